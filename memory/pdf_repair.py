"""A PDF file that its reader refuses: found objects, put in order anew."""

import re
import zlib
from collections.abc import Iterator

_OBJECT = re.compile(rb"(?<![0-9])(\d{1,7})\s{1,8}(\d{1,5})\s{1,8}obj\b")
_CATALOG = re.compile(rb"/Type\s*/Catalog\b")
_PAGES = re.compile(rb"/Pages\s+(\d+)\s+\d+\s+R")
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d+)")
_OBJECT_STREAM = re.compile(rb"/Type\s*/ObjStm\b")
_STREAM = re.compile(rb"stream\r?\n")
_HEAD_BYTES = 4096
_MAX_STREAM_BYTES = 64 * 2**20


def repaired(data: bytes) -> bytes | None:
    """The file with a new index of its objects and, where it is lost, a new list of pages.

    Returns:
        None where no page is found, or the file is encrypted (its key lay in what is lost).
    """
    start = data.find(b"%PDF-")
    if start < 0 or b"/Encrypt" in data:
        return None
    data = data[start:]
    places = {int(m[1]): (m.start(), int(m[2])) for m in _OBJECT.finditer(data)}
    tail = bytearray(b"\n")
    for place, _ in list(places.values()):
        if _OBJECT_STREAM.search(_head(data, place)):
            for number, body in _unpacked(data, place):
                if number not in places:
                    places[number] = (len(data) + len(tail), 0)
                    tail += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    whole = data + bytes(tail)
    root = _root(whole, places)
    if root is None:
        pages = [n for n, (at, _) in places.items() if _PAGE.search(_head(whole, at))]
        if not pages:
            return None
        root = max(places) + 1
        kids = b" ".join(b"%d 0 R" % page for page in pages)
        made = (
            b"<< /Type /Catalog /Pages %d 0 R >>" % (root + 1),
            b"<< /Type /Pages /Count %d /Kids [ %b ] >>" % (len(pages), kids),
        )
        for number, body in enumerate(made, root):
            places[number] = (len(whole), 0)
            whole += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    return whole + _index(places, len(whole), root)


def _head(data: bytes, place: int) -> bytes:
    """The dictionary at the beginning of an object, about."""
    head = data[place : place + _HEAD_BYTES]
    end = head.find(b"endobj")
    return head if end < 0 else head[:end]


def _root(data: bytes, places: dict[int, tuple[int, int]]) -> int | None:
    """The catalog, where it and the list of pages that it names are there."""
    for number, (at, _) in reversed(places.items()):
        head = _head(data, at)
        pages = _PAGES.search(head) if _CATALOG.search(head) else None
        if pages and int(pages[1]) in places:
            count = _COUNT.search(_head(data, places[int(pages[1])][0]))
            if count and int(count[1]):
                return number
    return None


def _unpacked(data: bytes, place: int) -> Iterator[tuple[int, bytes]]:
    """Objects of an object stream, as far as it is whole."""
    head = _head(data, place)
    stream = _STREAM.search(head)
    sizes = {
        name: re.search(rb"/%b\s+(\d+)" % name, head[: stream.start() if stream else 0])
        for name in (b"N", b"First")
    }
    number_of, first = sizes[b"N"], sizes[b"First"]
    if not stream or not number_of or not first:
        return
    body = data[place + stream.end() :]
    if b"/FlateDecode" in head[: stream.start()]:
        try:
            body = zlib.decompressobj().decompress(body, _MAX_STREAM_BYTES)
        except zlib.error:
            return
    start = int(first[1])
    numbers = re.findall(rb"\d+", body[:start])[: 2 * int(number_of[1])]
    marks = [(int(a), int(b)) for a, b in zip(numbers[::2], numbers[1::2], strict=False)]
    ends = [at for _, at in marks[1:]] + [len(body) - start]
    for (number, at), end in zip(marks, ends, strict=True):
        yield number, body[start + at : start + end]


def _index(places: dict[int, tuple[int, int]], at: int, root: int) -> bytes:
    """A cross-reference table and trailer, to stand at ``at``."""
    lines = [b"xref\n0 1\n0000000000 65535 f \n"]
    numbers = sorted(number for number in places if number > 0)
    run: list[int] = []
    for number in [*numbers, -1]:
        if run and number != run[-1] + 1:
            lines.append(b"%d %d\n" % (run[0], len(run)))
            lines.extend(b"%010d %05d n \n" % places[n] for n in run)
            run = []
        run.append(number)
    size = (numbers[-1] if numbers else 0) + 1
    lines.append(b"trailer\n<< /Size %d /Root %d 0 R >>\n" % (size, root))
    lines.append(b"startxref\n%d\n%%%%EOF\n" % at)
    return b"".join(lines)
