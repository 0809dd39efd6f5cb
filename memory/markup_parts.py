"""What the walk over a tree yields besides blocks."""

from dataclasses import dataclass

from memory.blocks import Block


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place that a table of contents points to: the block that comes next."""

    name: str


@dataclass(frozen=True, slots=True)
class PageMark:
    """Here a page of the printed edition begins."""

    label: str


Walked = Block | Anchor | PageMark
