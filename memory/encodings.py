"""Bytes to text: which encoding they are in, and what could not be read."""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass

from memory.characters import clean
from memory.document import Problem

_MARKS = (  # the longer first: UTF-32's begins like UTF-16's
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MULTIBYTE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.I)
_SAMPLE_BYTES = 200_000  # what an encoding is told from; more makes it slower, not surer


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text, the encoding it was in, and how many bytes had no meaning in it.

    Attributes:
        text: Cleaned, see ``memory.characters.clean``.
        encoding: Python's name of it.
        replaced: Bytes that stand as U+FFFD in the text.
    """

    text: str
    encoding: str
    replaced: int = 0

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What to tell the person about the bytes that could not be read."""
        if not self.replaced:
            return ()
        what = f"{self.replaced:,} bytes are not valid {self.encoding}; they are shown as \ufffd"
        return (Problem(what, "save the file as UTF-8 from the program that made it"),)


def decode(data: bytes, declared: str = "") -> Decoded:
    """The text of a file whose encoding nobody vouches for.

    In this order: a byte order mark; UTF-16 without one; UTF-8 that is valid throughout (other
    texts hardly ever are, so it beats a declaration); the declared encoding where it fits;
    UTF-8 with stray lines of Windows-1252; else the likeliest of the legacy encodings.

    Args:
        data: The bytes.
        declared: What the file or its container says, empty where it says nothing.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _replacing(data[len(mark) :], encoding)
    if encoding := _utf16_without_mark(data):
        return _replacing(data, encoding)
    if re.search(rb"\x1b\$[@B]", data) and (text := _strict(data, "iso2022_jp")) is not None:
        return Decoded(clean(text), "iso2022_jp")
    if (text := _strict(data, "utf-8")) is not None:
        return Decoded(clean(text), "utf-8")
    if _is_mostly_utf8(data):
        return _line_by_line(data)
    encoding = _known(declared)
    if encoding and (text := _strict(data, encoding)) is not None and _plausible(text):
        return Decoded(clean(text), encoding)
    return _replacing(data, _legacy(data))


def declared_encoding(head: bytes) -> str:
    """What an XML declaration or a ``<meta>`` element says, empty where none does."""
    found = _DECLARED.search(head[:4096])
    return found.group(1).decode("ascii") if found else ""


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, ValueError):
        return None


def _replacing(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, errors="replace")
    return Decoded(clean(text), encoding, text.count("\ufffd"))


def _known(declared: str) -> str:
    """Python's name of a declared encoding; what browsers take these names to mean."""
    try:
        name = codecs.lookup(declared).name if declared else ""
    except LookupError:
        return ""
    if name.startswith(("utf-16", "utf-32", "utf-8")):
        return ""  # the bytes themselves have said already that they are not
    wider = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
    wider |= {"shift_jis": "cp932", "euc_kr": "cp949", "iso8859-9": "cp1254"}
    return wider.get(name, name)


def _plausible(text: str) -> bool:
    """Whether a text decoded as declared is one: hardly any control or unassigned characters."""
    odd = sum(1 for c in text if "\x7f" <= c <= "\x9f" or "\ue000" <= c <= "\uf8ff")
    return odd * 200 <= len(text)


def _utf16_without_mark(data: bytes) -> str:
    """UTF-16 leaves a zero byte in every ASCII character, always on the same side."""
    head = data[:4096]
    if len(head) < 4 or len(data) % 2 or head.count(0) * 200 < len(head):
        return ""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if min(even, odd) * 16 > max(even, odd):
        return ""
    encoding = "utf-16-be" if even > odd else "utf-16-le"
    return encoding if _strict(data, encoding) is not None else ""


def _is_mostly_utf8(data: bytes) -> bool:
    """Whether what is not UTF-8 is stray bytes or lines; other encodings look like it by chance."""
    sample = data[:_SAMPLE_BYTES]
    beyond_ascii = sum(byte >= 0x80 for byte in sample)
    if sum(map(len, _MULTIBYTE.findall(sample))) >= 0.9 * beyond_ascii:
        return True
    lines = [line for line in sample.splitlines() if not line.isascii()]
    num_valid = sum(_strict(line, "utf-8") is not None for line in lines)
    return num_valid >= 0.3 * len(lines)


def _line_by_line(data: bytes) -> Decoded:
    """UTF-8 where a line is valid or has any, Windows-1252 where a line has none."""
    lines, replaced = [], 0
    for line in data.splitlines(keepends=True):
        text = _strict(line, "utf-8")
        if text is None:
            encoding = "utf-8" if _MULTIBYTE.search(line) else "cp1252"
            text = line.decode(encoding, errors="replace")
            replaced += text.count("\ufffd")
        lines.append(text)
    return Decoded(clean("".join(lines)), "utf-8", replaced)


def _legacy(data: bytes) -> str:
    """The likeliest encoding from before Unicode."""
    sample = data[:_SAMPLE_BYTES]
    for encoding, needed, is_everyday in _EAST_ASIAN:
        # A few bad bytes are a damaged file; many are another encoding.
        text = sample.decode(encoding, errors="replace")
        beyond = [char for char in text if char >= "\x80"]
        if not beyond or beyond.count("\ufffd") * 50 > len(beyond):
            continue
        if encoding in ("euc_jp", "cp932") and len(_KANA.findall(text)) * 10 < len(beyond):
            continue  # no Japanese is without kana
        if sum(map(is_everyday, beyond)) >= needed * len(beyond):
            return encoding
    return _single_byte(sample)


def _in_rows(encoding: str, *rows: tuple[int, int]) -> Callable[[str], bool]:
    """Whether a character stands in these rows of a two-byte encoding."""

    def is_everyday(char: str) -> bool:
        code = char.encode(encoding, errors="ignore")
        return len(code) == 2 and any(first <= code[0] <= last for first, last in rows)

    return is_everyday


# Of a text read in the right one, nearly all characters beyond ASCII are everyday ones; the same
# bytes read in a wrong one give rare characters, or none at all. The order matters: the everyday
# rows of Chinese would take in those of Japanese and Korean too.
_KANA = re.compile("[\u3041-\u30ff]")
_JAPANESE = _in_rows("euc_jp", (0xA1, 0xA5), (0xB0, 0xCF))
_EAST_ASIAN: tuple[tuple[str, float, Callable[[str], bool]], ...] = (
    ("euc_jp", 0.8, _JAPANESE),
    ("cp932", 0.8, _JAPANESE),
    ("cp949", 0.9, lambda char: "\uac00" <= char <= "\ud7a3" or "\u3000" <= char <= "\u303f"),
    ("gb18030", 0.8, _in_rows("gb2312", (0xA1, 0xA3), (0xB0, 0xD7))),
    ("big5", 0.8, _in_rows("big5", (0xA1, 0xC6))),
    ("gb18030", 0.6, _in_rows("gb2312", (0xA1, 0xA3), (0xB0, 0xD7))),
)

_OTHER_SCRIPTS = [
    *("cp1251", "koi8_r", "koi8_u", "cp866", "iso8859_5", "mac_cyrillic"),
    *("cp1253", "iso8859_7", "cp1255", "cp1256", "cp874"),
]
# What stands in running text beyond ASCII, in the languages that each was made for.
_MARKS_OF_PROSE = "–—‘’“”„…«»•§°©"
_LATIN = {
    "cp1252": "àáâãäåæçèéêëìíîïñòóôõöøùúûüßœÀÁÂÄÅÆÇÈÉÊÍÎÑÓÔÖØÚÜŒ€£¿¡ªº½²´·" + _MARKS_OF_PROSE,
    "cp1250": "áâăäąćčçďđéęëěíîĺľłńňóôőöřśšşťţúůűüýźžżßÁĄĆČĎÉĘĚÍŁŃÓÖŘŚŠŤÚŮÜÝŹŽŻ" + _MARKS_OF_PROSE,
    "iso8859_2": "áâăäąćčçďđéęëěíîĺľłńňóôőöřśšşťţúůűüýźžżßÁĄĆČĎÉĘĚÍŁŃÓÖŘŚŠŤÚŮÜÝŹŽŻ§°",
    "cp1254": "çğıöşüâîûÇĞİÖŞÜ" + _MARKS_OF_PROSE,
    "cp1257": "āąčćēęėģīįķļłņńōóõöšśųūüžźżßĀČĒĢĪĶĻŅŠŪŽ" + _MARKS_OF_PROSE,
    "cp850": "àáâäåæçèéêëìíîïñòóôöøùúûüßÄÅÆÇÉÑÖØÜ¿¡ªº«»",
    "mac_roman": "àáâãäåæçèéêëìíîïñòóôõöøùúûüßœÄÅÆÇÉÈÖØÜ¿¡" + _MARKS_OF_PROSE,
}


def _single_byte(sample: bytes) -> str:
    """The likeliest of the encodings with one byte a character."""
    from charset_normalizer import from_bytes

    beyond = bytes(byte for byte in sample if byte >= 0x80)
    shares = {
        encoding: sum(map(everyday.__contains__, beyond.decode(encoding, errors="replace")))
        for encoding, everyday in _LATIN.items()
    }
    latin = max(shares, key=lambda encoding: shares[encoding])  # the first of equals
    # In Latin letters most characters are ASCII; in other scripts most are not.
    letters = len(re.findall(rb"[A-Za-z]", sample))
    if shares[latin] >= 0.9 * len(beyond) and letters > len(beyond):
        return latin
    found = from_bytes(sample, cp_isolation=_OTHER_SCRIPTS, enable_fallback=False).best()
    return found.encoding if found else latin
