"""The memory tree: gists, summaries of gists, summaries of those, up to one root (MemWalker).

The leaves are episodes and their gists, so that tree and gist memory share the work
(arXiv:2310.05029 and arXiv:2402.09727).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event

from memory.artefacts import Artefacts
from memory.document import Document, Span
from memory.gists import GistMemory, needs_model
from memory.making import Made, Making, in_parallel
from memory.shorten import By, Short, Shortening, kept_short, shorten
from memory.tree_shape import Group, Shape, shape_of
from serving.model import LanguageModel, Usage, num_at_once

_SHARE = 0.6
_MOST_WORDS = 100


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree.

    Attributes:
        number: Its position in ``MemoryTree.nodes``.
        level: 0 for leaves; a parent's is one more than its highest child's.
        span: From its first episode's beginning to its last one's end, in the document's text.
        children: Numbers of its children, in document order; empty for a leaf.
        parent: Number of its parent, or None for the root.
        text: Its short version.
        title: Of the section that it is, empty where it is none.
        by: Who wrote the short version.
    """

    number: int
    level: int
    span: Span
    children: tuple[int, ...]
    parent: int | None
    text: str
    title: str = ""
    by: By = "model"


@dataclass(frozen=True, slots=True)
class MemoryTree:
    """A tree over all of a document.

    Attributes:
        document_id: Whose.
        nodes: The leaves first, in document order; the root last.
        usage: Tokens that were spent on what was missing, gists included.
    """

    document_id: str
    nodes: tuple[Node, ...]
    usage: Usage = Usage()

    @property
    def root(self) -> Node:
        """The node that spans the document."""
        return self.nodes[-1]

    def children(self, node: Node) -> list[Node]:
        """In document order."""
        return [self.nodes[number] for number in node.children]

    def path(self, node: Node) -> list[Node]:
        """From the root to a node, both included."""
        path = [node]
        while (parent := path[-1].parent) is not None:
            path.append(self.nodes[parent])
        return path[::-1]


@dataclass(slots=True)
class _Branch:
    """A node as it grows."""

    number: int
    level: int
    span: Span
    children: list["_Branch"] = field(default_factory=list)
    short: Short | None = None
    title: str = ""
    parent: int | None = None


def make_tree(
    document: Document,
    memory: GistMemory,
    *,
    model: LanguageModel | None,
    artefacts: Artefacts,
    fan_out: int,
    shape: Shape = "auto",
) -> Made[MemoryTree]:
    """The tree over a gist memory, level by level; calls of one level run together.

    Args:
        document: What it is over.
        memory: Its gists, at least one.
        model: Writes the summaries; None takes the most central sentences, without a call.
        artefacts: Keeps them.
        fan_out: Most children of a node.
        shape: See ``MemoryOptions``.

    Raises:
        ModelUnavailable: what was finished is kept.
    """
    leaves = [
        _Branch(gist.number, 0, gist.span, short=Short(gist.text, gist.by, gist.fault))
        for gist in memory.gists
    ]
    levels = _grown(leaves, shape_of(document, [g.span for g in memory.gists], fan_out, shape))
    total = sum(map(len, levels))
    done, usage = 0, Usage()
    yield Making("memory tree", 0, total)
    for level in levels:
        works = [_work(branch) for branch in level]
        if model is None:
            for branch, work in zip(level, works, strict=True):
                branch.short = work.without_model()
            done += len(level)
            continue
        keys = [work.key(model) for work in works]
        kept = artefacts.find(document.id, keys)
        missing: list[int] = []
        for i, (branch, key) in enumerate(zip(level, keys, strict=True)):
            if not needs_model(works[i]):
                branch.short = works[i].without_model()
            elif key in kept:
                branch.short = kept_short(kept[key].data)
            else:
                missing.append(i)
        done += len(level) - len(missing)
        jobs = [partial(_job, works[i], document.id, model, artefacts) for i in missing]
        for position, short, spent in in_parallel(jobs, num_at_once=num_at_once(model)):
            level[missing[position]].short = short
            done += 1
            usage += spent
            yield Making("memory tree", done, total, usage)
    yield Making("memory tree", total, total, usage)
    nodes = [_node(branch) for row in [leaves, *levels] for branch in row]
    return MemoryTree(document.id, tuple(nodes), memory.usage + usage)


def num_summaries(document: Document, episodes: Sequence[Span], fan_out: int, shape: Shape) -> int:
    """How many nodes above the leaves a tree over these episodes has."""
    leaves = [_Branch(i, 0, span) for i, span in enumerate(episodes)]
    return sum(map(len, _grown(leaves, shape_of(document, episodes, fan_out, shape))))


def _grown(leaves: Sequence[_Branch], root: Group) -> list[list[_Branch]]:
    """The inner nodes by level, the lowest first; numbered after the leaves."""
    inner: list[_Branch] = []

    def grow(group: Group) -> _Branch:
        if group.leaf is not None:
            return leaves[group.leaf]
        children = [grow(child) for child in group.children]
        branch = _Branch(
            0,
            1 + max(child.level for child in children),
            Span(children[0].span.start, children[-1].span.end),
            children,
            title=group.title,
        )
        inner.append(branch)
        return branch

    grow(root)
    inner.sort(key=lambda branch: (branch.level, branch.span))
    for number, branch in enumerate(inner, len(leaves)):
        branch.number = number
        for child in branch.children:
            child.parent = number
    levels: dict[int, list[_Branch]] = {}
    for branch in inner:
        levels.setdefault(branch.level, []).append(branch)
    return [levels[level] for level in sorted(levels)]


def _work(branch: _Branch) -> Shortening:
    parts = [
        f"{child.title}: {child.short.text}" if child.title else child.short.text
        for child in branch.children
        if child.short is not None
    ]
    return Shortening("summary", "\n\n".join(parts), _SHARE, _MOST_WORDS)


def _job(
    work: Shortening, document_id: str, model: LanguageModel, artefacts: Artefacts, stop: Event
) -> tuple[Short, Usage]:
    return shorten(work, document_id, model=model, artefacts=artefacts, stop=stop)


def _node(branch: _Branch) -> Node:
    short = branch.short or Short("", "extract")
    return Node(
        branch.number,
        branch.level,
        branch.span,
        tuple(child.number for child in branch.children),
        branch.parent,
        short.text,
        branch.title,
        short.by,
    )
