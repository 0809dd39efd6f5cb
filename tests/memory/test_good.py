"""Every good file reads whole, in a process of its own, within the limits of the product."""

import csv
import re
from dataclasses import dataclass

import pytest
from parsed import SHARED, shared

from memory.chunker import chunk
from memory.parsing import read_document


@dataclass(frozen=True)
class Good:
    """What is known of a file.

    Attributes:
        pages: How many; for PDFs the manifest knows it too.
        sections: At least so many.
        begins: What stands in its first eighth.
        ends: What stands in its last eighth.
    """

    pages: int
    sections: int
    begins: str
    ends: str


GOOD = {
    "childrens-literature.epub": Good(92, 30, "the modern user of the fairy-story", "priest"),
    "debian-faq.txt": Good(1, 150, "with other Unix systems?", "support for package des"),
    "debian-policy.epub": Good(25, 300, "Version 3.1.0", "X app-defaults directory has moved"),
    "debian-reference-ja.txt": Good(1, 400, "ハードディスクの全消去", "$ ldd /bin/ls"),
    "debmake-guide-ja.epub": Good(13, 150, "clean build under clearly", "package.install.log"),
    "epubcheck-preview.docx": Good(1, 12, "by providing all program output in .JSON", "prototype"),
    "flag-day-wikipedia.html": Good(1, 6, "National Flag of Canada Day", "Wikimedia Foundation"),
    "georgia-britannica.epub": Good(2, 8, "the Great Valley Region", "is called the Chattooga"),
    "kicad-eeschema-ja.html": Good(1, 180, "Complex hierarchies", "Next Marker"),
    "linear-algebra.epub": Good(94, 250, "Example SP4 A subspace of P_4", "Definition SUV"),
    "moby-dick-part.docx": Good(1, 60, "the soles of my boots", "nearly equal to three tons"),
    "moby-dick-part.odt": Good(1, 60, "the soles of my boots", "nearly equal to three tons"),
    "moby-dick-part.rtf": Good(1, 60, "the soles of my boots", "nearly equal to three tons"),
    "moby-dick.epub": Good(144, 136, "Call me Ishmael.", "only found another orphan"),
    "moby-dick.txt": Good(1, 136, "Call me Ishmael.", "only found another orphan"),
    "policy-controlfields.docx": Good(1, 40, "must not begin with the", "are not the .dsc."),
    "wasteland.epub": Good(1, 6, "stamm' aus Litauen, echt deutsch", "From Ritual to Romance"),
    "debian-edu-zh.pdf": Good(98, 100, "远程桌面", "interchange; or,"),
    "debian-policy.pdf": Good(193, 300, "Copyright", "must be installed setgid utmp"),
    "debian-reference-ja.pdf": Good(272, 400, "コピーと同期ツール", "あなたも意味あるバグ"),
    "debian-reference-zh-cn.pdf": Good(251, 400, "直接写入硬盘", "Flex 是兼容 Lex"),
    "debmake-guide-ru.pdf": Good(146, 150, "Section 5.20.2", "необязательные аргументы"),
    "eyes17-physics-lab-manual.pdf": Good(130, 20, "PT100", "Place some semitransparent material"),
    "fhs-3.0.pdf": Good(50, 30, "Without his dedication", "located in /usr/src/linux"),
    "gnuplot-manual.pdf": Good(311, 600, "Nonuniform", "plot windows survive after main gnuplot"),
    "lshort-persian.pdf": Good(147, 60, "پانوشت", "فرمان"),
    "octave-manual-1100p.pdf": Good(1158, 500, "call cast twice", "-ldxml"),
    "paper-elife.pdf": Good(26, 30, "Advances in RNA imaging", "Nojima T, Gomes T"),
    "paper-genome-biology.pdf": Good(23, 30, "predominantly exists in the super-open", "HH-suite3"),
    "paper-nar-two-column.pdf": Good(16, 8, "how transcription is affected", "DNA damage in Human"),
    "paper-nature-comms.pdf": Good(7, 5, "slow divergence rates", "Shenzhen Medical Research"),
    "r-intro.pdf": Good(113, 130, "Compression and Archives", "getAnywhere"),
}  # fmt: skip
LABELS = {  # of the first and last page
    "debian-edu-zh.pdf": ("i", "92"),
    "debian-policy.pdf": ("1", "183"),
    "debian-reference-ja.pdf": ("1", "244"),
    "debian-reference-zh-cn.pdf": ("1", "223"),
    "debmake-guide-ru.pdf": ("1", "137"),
    "fhs-3.0.pdf": ("1", "43"),
    "octave-manual-1100p.pdf": ("T-1", "1142"),
    "paper-nar-two-column.pdf": ("4151", "4166"),
    "paper-nature-comms.pdf": ("1", "7"),
    "r-intro.pdf": ("T-1", "107"),
}
SLOW = {"octave-manual-1100p.pdf", "gnuplot-manual.pdf", "debian-reference-ja.pdf"}


def manifest() -> dict[str, dict[str, str]]:
    path = SHARED / "docs" / "manifest.tsv"
    if not path.is_file():
        pytest.skip("the shared documents are not here (set GISTREE_SHARED)")
    with path.open(encoding="utf-8", newline="") as file:
        return {row["path"]: row for row in csv.DictReader(file, delimiter="\t")}


def test_every_good_file_is_known():
    assert {name for name in manifest() if name.startswith("good/")} == {
        f"good/{name}" for name in GOOD
    }


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in GOOD]
)
def test_good(name):
    wanted, row = GOOD[name], manifest()[f"good/{name}"]
    seen = []
    document = read_document(shared(f"good/{name}"), on_progress=seen.append)

    assert (document.id, document.size_bytes) == (row["sha256"], int(row["bytes"]))
    told = re.match(r"(\d+) pages", row["observed_with_pymupdf_or_zipfile"])
    assert len(document.pages) == wanted.pages == int(told[1] if told else wanted.pages)
    assert document.pages_read == wanted.pages, document.problems
    assert document.problems == ()
    assert document.paged or not name.endswith(".pdf")
    if name in LABELS:
        assert (document.pages[0].label, document.pages[-1].label) == LABELS[name]

    text, eighth = document.text, len(document.text) // 8
    assert wanted.begins in flat(text[:eighth])
    assert flat(wanted.ends) in flat(text[-eighth:])

    assert len(document.sections) >= wanted.sections
    assert all(len(section.title) < 300 for section in document.sections)

    assert [p.pages_done for p in seen] == [*range(wanted.pages), wanted.pages]
    assert seen[-1].pages_total == wanted.pages

    chunks = chunk(document, count_tokens=lambda texts: [len(t) // 4 + 1 for t in texts])
    assert "".join("".join(c.of(text).split()) for c in chunks) == "".join(text.split())


def flat(text: str) -> str:
    return " ".join(text.split())
