"""Which links of a page lead to notes, and what the notes' marks are."""

import re
from dataclasses import dataclass, field
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import unquote

TYPE = "{http://www.idpf.org/2007/ops}type"
_MARK = re.compile(r"[\[(]?\s*(\d{1,4}|[*†‡§¶#]{1,3}|[a-zA-Z]|[ivxlIVXL]{1,7})\s*[\])]?")
_REFERENCE_TYPES = {"noteref", "doc-noteref", "annoref"}
_REFERENCE_CLASSES = {
    *("footnote-reference", "footnote-ref", "footnoteref", "fnanchor", "noteref", "endnote-ref"),
    *("footnote_ref", "fn-ref", "sdfootnoteanc", "sdendnoteanc"),
}
NOTE_TYPES = {"footnote", "endnote", "rearnote", "doc-footnote", "doc-endnote"}
_BACK_TYPES = {"doc-backlink", "backlink", "referrer"}
_ARROWS = re.compile(r"[\s\ufe0e\ufe0f]*[↩↑⇑^⏎←⤴]+[\s\ufe0e\ufe0f]*")


def types_of(element: Any) -> set[str]:
    """The element's ``epub:type`` and ``role`` words."""
    types = element.get(TYPE) or element.get("epub:type")
    role = element.get("role")
    if not types and not role:
        return set()
    return {*(types or "").lower().split(), *(role or "").lower().split()}


@dataclass(slots=True)
class NoteMarks:
    """The marks that notes got from the links to them; one for a whole book (notes may end it).

    Marks that cannot tell two notes apart (a book full of ``*``) become numbers.
    """

    by_target: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    numbered: int = 0

    def mark(self, target: str, said: str) -> str:
        """The mark of the note at ``target``, "file#id", whose link reads ``said``."""
        if target not in self.by_target:
            if not said.isdigit() and said in self.used:
                self.numbered += 1
                said = str(self.numbered)
            elif not said.isdigit() and not said.isalnum():
                self.numbered += 1
                self.used.add(said)
                said = str(self.numbered)
            self.used.add(said)
            self.by_target[target] = said
        return self.by_target[target]


@dataclass(slots=True)
class NoteLinks:
    """Of one page: the links that are references (with their marks) and those that lead back."""

    references: dict[Any, str] = field(default_factory=dict)
    back: set[Any] = field(default_factory=set)


def find_note_links(root: Any, file: str, marks: NoteMarks) -> NoteLinks:
    """Note references and back links below ``root``, in order; their marks go into ``marks``."""
    links = NoteLinks()
    reference_ids: set[str] = set()
    for link in root.iter("{*}a"):
        target = resolve(file, link.get("href") or "")
        if "#" not in target:
            continue
        said = "".join(link.itertext()).strip()
        if types_of(link) & _BACK_TYPES or target in reference_ids or _ARROWS.fullmatch(said):
            links.back.add(link)
        elif (mark := _MARK.fullmatch(said)) and _is_reference(link, said):
            links.references[link] = marks.mark(target, mark.group(1))
            reference_ids.update(f"{file}#{name}" for name in _ids_around(link))
    return links


def resolve(file: str, href: str) -> str:
    """Where a link of ``file`` leads, as "folder/file#id"; empty for one that leaves the book."""
    if "://" in href or href.startswith(("mailto:", "data:", "javascript:")):
        return ""
    path, _, fragment = href.partition("#")
    path = normpath(join(dirname(file), unquote(path))) if path else file
    return f"{path}#{unquote(fragment)}" if fragment else path


def _is_reference(link: Any, said: str) -> bool:
    if types_of(link) & _REFERENCE_TYPES:
        return True
    if _REFERENCE_CLASSES & set((link.get("class") or "").lower().split()):
        return True
    if said.startswith("[") and said.endswith("]"):
        return True
    parent = link.getparent()
    is_raised = parent is not None and str(parent.tag).rpartition("}")[2] == "sup"
    return is_raised or any(str(child.tag).rpartition("}")[2] == "sup" for child in link)


def _ids_around(link: Any) -> set[str]:
    """Ids at which a note's back link may aim: the link's own or those of what is close to it."""
    around = [link, *link.iterdescendants()]
    parent, before = link.getparent(), link.getprevious()
    if before is not None and not "".join(before.itertext()):
        around.append(before)
    if parent is not None and str(parent.tag).rpartition("}")[2] in ("sup", "span"):
        around.append(parent)
    return {name for element in around for name in (element.get("id"), element.get("name")) if name}
