"""Small PDF files made for a test: lines of text at places, pages, labels, outlines."""

from pathlib import Path

FONTS = {"F1": "Helvetica", "F2": "Helvetica-Bold", "F3": "Courier"}


def made_pdf(folder: Path, pages: list[list[tuple]], *, labels: str = "", outline=()) -> Path:
    """A file of these pages.

    Args:
        folder: Where it goes.
        pages: Of each its lines: (x, y from the top, text[, size[, font]]), on 400 x 600 points.
        labels: The dictionary of page labels, for example "0 << /S /r >>".
        outline: (title, page) of each entry.
    """
    bodies: list[str] = []

    def add(body: str) -> int:
        bodies.append(body)
        return len(bodies)

    catalog, tree, fonts = add(""), add(""), add("")
    names = " ".join(
        f"/{name} << /Type /Font /Subtype /Type1 /BaseFont /{base} /Encoding /WinAnsiEncoding >>"
        for name, base in FONTS.items()
    )
    bodies[fonts - 1] = f"<< /Font << {names} >> >>"
    kids = []
    for lines in pages:
        content = ""
        for x, y, text, *rest in lines:
            size, font = (*rest, *(10, "F1")[len(rest) :])
            escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
            content += f"BT /{font} {size} Tf 1 0 0 1 {x} {600 - y} Tm ({escaped}) Tj ET\n"
        stream = add(f"<< /Length {len(content)} >>\nstream\n{content}endstream")
        kids.append(
            add(
                f"<< /Type /Page /Parent {tree} 0 R /MediaBox [0 0 400 600] "
                f"/Resources {fonts} 0 R /Contents {stream} 0 R >>"
            )
        )
    more = f" /PageLabels << /Nums [{labels}] >>" if labels else ""
    if outline:
        root = add("")
        entries = [root + 1 + n for n in range(len(outline))]
        for n, (title, page) in enumerate(outline):
            following = f" /Next {entries[n + 1]} 0 R" if n + 1 < len(entries) else ""
            add(
                f"<< /Title ({title}) /Parent {root} 0 R "
                f"/Dest [{kids[page]} 0 R /Fit]{following} >>"
            )
        bodies[root - 1] = f"<< /First {entries[0]} 0 R /Last {entries[-1]} 0 R >>"
        more += f" /Outlines {root} 0 R"
    bodies[catalog - 1] = f"<< /Type /Catalog /Pages {tree} 0 R{more} >>"
    listed = " ".join(f"{kid} 0 R" for kid in kids)
    bodies[tree - 1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{listed}] >>"
    path = folder / "made.pdf"
    path.write_bytes(_file(bodies, catalog))
    return path


def _file(bodies: list[str], root: int) -> bytes:
    data = b"%PDF-1.7\n"
    places = []
    for number, body in enumerate(bodies, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252")
    index = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(bodies) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{index}trailer\n"
    tail += f"<< /Size {size} /Root {root} 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + tail.encode()


def lines(*texts: str, x: int = 50, y: int = 60, size: int = 10, pitch: float = 12) -> list[tuple]:
    """Lines one under the other."""
    return [(x, y + n * pitch, text, size) for n, text in enumerate(texts)]
