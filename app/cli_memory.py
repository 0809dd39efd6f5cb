"""``gistree memory``: a document in short, and as a tree."""

from collections.abc import Generator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from app.cli_options import JsonOption, LibraryOption, print_json

if TYPE_CHECKING:
    from memory.gists import GistMemory
    from memory.making import Making
    from memory.memories import Estimate
    from memory.tree import MemoryTree

T = TypeVar("T")


class Kind(StrEnum):
    """A memory of a document."""

    GISTS = "gists"
    TREE = "tree"


def memory(
    document: Annotated[str, typer.Argument(help="Id, name or title.")],
    kind: Annotated[Kind, typer.Argument(help="What to show.")] = Kind.GISTS,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only say what making it takes.")
    ] = False,
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a document in short; what is missing of that is made first, and kept."""
    from app.library import open_library
    from app.present import gists_json, tree_json
    from memory.memories import finished

    with open_library(library) as lib:
        key = lib.show(document).id
        memories = lib.memories
        if estimate:
            _say_estimate(memories.estimate(key, tree=kind is Kind.TREE), as_json=as_json)
            return
        if kind is Kind.TREE:
            tree = finished(_watched(memories.tree(key)))
            if as_json:
                print_json(tree_json(tree))
            else:
                _show_tree(tree)
            return
        gists = finished(_watched(memories.gists(key)))
        if as_json:
            print_json(gists_json(gists))
        else:
            _show_gists(gists)


def _say_estimate(sizes: "Estimate", *, as_json: bool) -> None:
    from dataclasses import asdict

    from app.terminal import out

    if as_json:
        print_json(asdict(sizes))
        return
    out.print(
        f"at most {sizes.calls:,} calls of the model, about {sizes.prompt_tokens:,} tokens of "
        f"prompts and at most {sizes.completion_tokens:,} of replies"
    )


def _watched(making: Generator["Making", None, T]) -> Generator["Making", None, T]:
    """The same, shown as it goes."""
    from app.terminal import err, plain

    try:
        while True:
            step = next(making)
            err.print(plain(str(step)), end="\r" if err.is_terminal else "\n")
            yield step
    except StopIteration as end:
        made: T = end.value
        return made
    finally:
        making.close()


def _show_gists(memory: "GistMemory") -> None:
    from app.terminal import out, plain

    for gist in memory.gists:
        mark = "" if gist.by == "model" else f" ({gist.by})"
        out.print(plain(f"{gist.number + 1}. {gist.text}{mark}"))
    out.print(
        f"{len(memory.gists)} parts; the gists leave out {memory.compression:.0f} % of the words"
    )


def _show_tree(tree: "MemoryTree") -> None:
    from app.terminal import out, plain

    def show(number: int, depth: int) -> None:
        node = tree.nodes[number]
        title = f"{node.title}: " if node.title else ""
        out.print(plain(f"{'  ' * depth}- {title}{node.text}"))
        for child in node.children:
            show(child, depth + 1)

    show(tree.root.number, 0)
