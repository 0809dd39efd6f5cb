"""How a memory tree branches: evenly, or as the document's own contents."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from memory.document import Document, Section, Span

Shape = Literal["auto", "contents", "even"]
_LEAST_SECTIONS = 3
_DEEPEST = 8  # nested sections; what lies deeper is grouped evenly


@dataclass(frozen=True, slots=True)
class Group:
    """A node to be: a leaf by its position, or what holds others together."""

    leaf: int | None = None
    children: tuple["Group", ...] = ()
    title: str = ""


def shape_of(document: Document, episodes: Sequence[Span], fan_out: int, shape: Shape) -> Group:
    """The root over these episodes; with one episode, that one itself.

    Args:
        document: Whose sections are meant.
        episodes: Leaves, in order; at least one.
        fan_out: Most children of a node.
        shape: "contents" takes the sections; "even" does not; "auto" takes them where at least
            three part the episodes.
    """
    leaves = [Group(leaf=i) for i in range(len(episodes))]
    if shape != "even":
        starts = [episode.start for episode in episodes]
        firsts = {_first(section, starts) for section in document.sections}
        if shape == "contents" or len(firsts) >= _LEAST_SECTIONS:
            return _by_contents(document.sections, starts, leaves, fan_out)
    return _even(leaves, fan_out)


def _even(groups: Sequence[Group], fan_out: int, title: str = "") -> Group:
    """One node over these, of nearly equal shares, with as few levels as the fan-out allows."""
    groups = list(groups)
    while len(groups) > fan_out:
        count = -(-len(groups) // fan_out)
        edges = [len(groups) * i // count for i in range(count + 1)]
        groups = [Group(children=tuple(groups[a:b])) for a, b in pairwise(edges)]
    if len(groups) == 1 and not title:
        return groups[0]
    return Group(children=tuple(groups), title=title)


def _first(section: Section, starts: Sequence[int]) -> int:
    """The episode in which a section begins."""
    return max(bisect_right(starts, section.span.start) - 1, 0)


def _by_contents(
    sections: Sequence[Section], starts: Sequence[int], leaves: Sequence[Group], fan_out: int
) -> Group:
    """A node for each section that holds two episodes or more.

    An episode belongs to the section that begins in it or before it last; of several that begin
    in one episode the highest counts, and a small section is a part of its episode.
    """
    heads: dict[int, Section] = {}
    depths = sorted({section.level for section in sections})[:_DEEPEST]
    sections = [section for section in sections if section.level in depths]
    for section in sections:
        first = _first(section, starts)
        if first not in heads or section.level < heads[first].level:
            heads[first] = section
    return _held(0, len(leaves), 0, sorted(heads.items()), leaves, fan_out, "")


def _held(
    start: int,
    end: int,
    level: int,
    heads: Sequence[tuple[int, Section]],
    leaves: Sequence[Group],
    fan_out: int,
    title: str,
) -> Group:
    """The node over the leaves ``start`` to ``end``, whose own section has this level."""
    inside = [(first, s) for first, s in heads if start <= first < end and s.level > level]
    if not inside:
        return _even(leaves[start:end], fan_out, title if end - start > 1 else "")
    top = min(section.level for _, section in inside)
    tops = [(first, section) for first, section in inside if section.level == top]
    children = []
    if tops[0][0] > start:
        children.append(_even(leaves[start : tops[0][0]], fan_out))
    ends = [*(first for first, _ in tops[1:]), end]
    for (first, section), stop in zip(tops, ends, strict=True):
        children.append(_held(first, stop, top, inside, leaves, fan_out, section.title))
    if len(children) == 1:
        return children[0]
    return _even(children, fan_out, title)
