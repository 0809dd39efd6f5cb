"""Mail: one message (EML) or a box of them (MBOX), each with its sender, date and subject."""

__all__ = ["MailParser"]

import email
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import policy
from email.message import EmailMessage
from pathlib import Path

from memory.blocks import Block, Info, PageStart, Part
from memory.characters import clean
from memory.document import Problem
from memory.encodings import decode
from memory.files import read_bytes
from memory.parsers.html import html_parts
from memory.plain_text import blocks
from memory.trees import html_tree

_NEXT_MESSAGE = re.compile(
    rb"(?:\A|(?<=\n\n)|(?<=\r\n\r\n))From [^\n]*\n(?=[\x21-\x39\x3b-\x7e]+:)"
)
_SHOWN = ("From", "To", "Cc", "Date", "Subject")


@dataclass(frozen=True, slots=True)
class MailParser:
    """Reads the text of messages, from HTML where they have no plain one; a message is a part.

    Attributes:
        max_bytes: Largest file that is read.
    """

    max_bytes: int = 512 * 2**20

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """The messages in the order of the file; attachments are named, not read."""
        data = read_bytes(path, self.max_bytes)
        starts = [found.span() for found in _NEXT_MESSAGE.finditer(data)]
        is_box = bool(starts) and starts[0][0] == 0
        if not is_box:
            starts = [(0, 0)]
        ends = [begin for begin, _ in starts[1:]] + [len(data)]
        media_type = "application/mbox" if is_box else "message/rfc822"
        yield Info(media_type, num_pages=len(starts))
        for page, ((_, begin), end) in enumerate(zip(starts, ends, strict=True)):
            yield PageStart()
            raw = data[begin:end]
            if is_box:
                raw = re.sub(rb"(?m)^>(>*From )", rb"\1", raw)
            yield from _message(email.message_from_bytes(raw, policy=policy.default), page)


def _message(message: EmailMessage, page: int) -> Iterator[Part]:
    yield Block(_line(message["Subject"]) or "(no subject)", "heading", 1)
    lines = (f"{name}: {_line(message[name])}" for name in _SHOWN if message[name])
    if head := "\n".join(lines):
        yield Block(head)
    body = message.get_body(("plain", "html"))
    if body is not None:
        payload = body.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
        text = decode(data, body.get_content_charset() or "").text
        if body.get_content_type() == "text/html":
            parts = html_parts(html_tree(text), media_type="text/html")
            yield from (part for part in parts if isinstance(part, Block))
        else:
            yield from blocks(text.split("\n"))
    names = [_line(part.get_filename()) or "unnamed" for part in message.iter_attachments()]
    if names:
        yield Problem(
            f"attachments are not read: {', '.join(names)}",
            "save them from the mail program and add them",
            page,
        )


def _line(text: object) -> str:
    return " ".join(clean(str(text or "")).split())
