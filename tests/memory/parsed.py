"""Files of the shared documents, parsed; for tests of the parsers."""

import io
import os
import re
import zipfile
from pathlib import Path

import pytest

from memory.blocks import Block, Outline, PageStart
from memory.document import Problem
from serving.plugins import load

SHARED = Path(os.environ.get("GISTREE_SHARED", Path(__file__).parents[2] / ".." / "shared"))


def shared(name: str) -> Path:
    path = SHARED / "docs" / name
    if not path.exists():
        pytest.skip(f"the shared document {name} is not here (set GISTREE_SHARED)")
    return path


def parse(parser: str, path: Path) -> list:
    return list(load("memory.parsers", parser)().parse(path))


def blocks(parts: list, kind: str = "") -> list[Block]:
    return [part for part in parts if isinstance(part, Block) and kind in ("", part.kind)]


def texts(parts: list, kind: str = "") -> list[str]:
    return [block.text for block in blocks(parts, kind)]


def pages(parts: list) -> list[PageStart]:
    return [part for part in parts if isinstance(part, PageStart)]


def outline(parts: list) -> list[Outline]:
    return [part for part in parts if isinstance(part, Outline)]


def problems(parts: list) -> list[Problem]:
    return [part for part in parts if isinstance(part, Problem)]


def whole(parts: list) -> str:
    return "\n\n".join(texts(parts))


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def zipped(folder: Path, name: str, files: dict[str, str | bytes]) -> Path:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as package:
        for path, content in files.items():
            package.writestr(path, content)
    return written(folder, name, held.getvalue())


def epub(
    folder: Path, pages: dict[str, str], *, extra: dict[str, str] | None = None, **opf
) -> Path:
    """An EPUB of these XHTML bodies, in this order; ``opf`` has ``items`` and ``spine`` to add."""
    items = "".join(
        f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(pages)
    )
    spine = "".join(f'<itemref idref="i{n}"/>' for n in range(len(pages)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Lamp</dc:title>'
        f"<dc:language>en-GB</dc:language></metadata><manifest>{items}{opf.get('items', '')}"
        f"</manifest><spine>{spine}{opf.get('spine', '')}</spine></package>"
    )
    head = (
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">'
        "<head><title>t</title></head><body>"
    )
    files = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:'
        'container"><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
        "OPS/book.opf": package,
        **{f"OPS/{name}": f"{head}{body}</body></html>" for name, body in pages.items()},
        **{f"OPS/{name}": content for name, content in (extra or {}).items()},
    }
    return zipped(folder, "lamp.epub", files)
