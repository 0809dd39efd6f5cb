"""Markdown: CommonMark with tables, strikethrough, front matter and footnotes."""

__all__ = ["MarkdownParser"]

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory.blocks import Part
from memory.encodings import decode
from memory.files import read_bytes
from memory.parsers.html import html_parts
from memory.trees import html_tree

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_NOTE = re.compile(
    r"^ {0,3}\[\^([^\]\s]+)\]:[ \t]*(.*(?:\n(?:[ \t]+.*|(?=\n[ \t])|\n(?=[ \t]+\S)))*)", re.M
)
_REFERENCE = re.compile(r"\[\^([^\]\s]+)\]")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.M | re.DOTALL)


@dataclass(frozen=True, slots=True)
class MarkdownParser:
    """Reads Markdown by way of the HTML that it stands for.

    Attributes:
        max_bytes: Largest file that is read.
    """

    max_bytes: int = 64 * 2**20

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """One part, headings as they stand, footnotes at the end."""
        decoded = decode(read_bytes(path, self.max_bytes))
        yield from markdown_parts(decoded.text)
        yield from decoded.problems


def markdown_parts(source: str) -> Iterator[Part]:
    """The parts of a document that is one Markdown text."""
    text, title = _without_front_matter(source)
    body, notes = _without_notes(text)
    referred = dict.fromkeys(_REFERENCE.findall(body))
    numbers = {name: n for n, name in enumerate((n for n in referred if n in notes), 1)}
    renderer = _renderer(numbers)
    page = renderer.render(body)
    for name in sorted(notes, key=lambda name: numbers.get(name, len(notes) + 1)):
        note = renderer.render(notes[name])
        page += f'<aside role="doc-footnote" id="note-{numbers.get(name, 0)}">{note}</aside>'
    tree = html_tree(f"<body>{page}</body>")
    yield from html_parts(tree, media_type="text/markdown", title=title)


def _without_front_matter(text: str) -> tuple[str, str]:
    """The text, and the title of the metadata before it."""
    found = _FRONT_MATTER.match(text)
    if not found or ":" not in found.group(1):
        return text, ""
    title = _TITLE.search(found.group(1))
    return text[found.end() :], title.group(1).strip("\"'") if title else ""


def _without_notes(text: str) -> tuple[str, dict[str, str]]:
    """The text, and the footnotes that are defined in it, but for what stands in listings."""
    notes: dict[str, str] = {}

    def take(found: re.Match[str]) -> str:
        lines = found.group(2).split("\n")
        notes[found.group(1)] = "\n".join([lines[0], *(line.strip() for line in lines[1:])])
        return ""

    pieces, position = [], 0
    for fence in _FENCE.finditer(text):
        pieces += [_NOTE.sub(take, text[position : fence.start()]), fence.group()]
        position = fence.end()
    pieces.append(_NOTE.sub(take, text[position:]))
    return "".join(pieces), notes


def _renderer(numbers: dict[str, int]) -> Any:
    """Markdown to HTML, with links where the text refers to a footnote."""
    from markdown_it import MarkdownIt

    def link(found: re.Match[str]) -> str:
        number = numbers.get(found.group(1))
        if number is None:
            return found.group()
        return f'<a role="doc-noteref" href="#note-{number}">{number}</a>'

    def text(renderer: Any, tokens: Any, place: int, options: Any, env: Any) -> str:
        return _REFERENCE.sub(link, html.escape(tokens[place].content, quote=False))

    markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    markdown.add_render_rule("text", text)
    return markdown
