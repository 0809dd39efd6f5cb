"""The control words of RTF that matter to its text."""

import re

TOKEN = re.compile(
    rb"\\(?P<word>[A-Za-z]{1,32})(?P<number>-?\d{1,10})? ?"
    rb"|\\'(?P<hex>[0-9A-Fa-f]{2})|\\(?P<symbol>[^A-Za-z])|(?P<brace>[{}])"
    rb"|[\r\n\0]+|(?P<text>[^\\{}\r\n\0]+)",
    re.DOTALL,
)

CHARACTERS = {
    **{"emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“"},
    **{"rdblquote": "”", "bullet": "•", "tab": " ", "enspace": " ", "emspace": " ", "qmspace": " "},
    **{"zwj": "\u200d", "zwnj": "\u200c", "nestcell": " | ", "nestrow": "; "},
}
SYMBOLS = {b"~": " ", b"_": "-", b"\n": "\n", b"\r": "\n", b"{": "{", b"}": "}", b"\\": "\\"}

# Groups without text of the document, and those marked "ignorable" (\*) that have some.
SKIPPED = {
    *("colortbl", "pict", "object", "header", "headerl", "headerr", "headerf", "footer", "footerl"),
    *("footerr", "footerf", "fldinst", "bkmkstart", "bkmkend", "listtable", "listoverridetable"),
    *("revtbl", "rsidtbl", "generator", "nonshppict", "themedata", "datastore", "sp", "shprslt"),
    *("xmlnstbl", "pnseclvl", "filetbl", "comment", "annotation", "ftnsep", "ftnsepc", "aftnsep"),
    *("atnid", "atnauthor", "xe", "tc", "txe", "rxe", "nesttableprops", "latentstyles", "operator"),
    *("author", "creatim", "revtim", "printim", "buptim", "company", "keywords", "subject"),
    *("doccomm", "manager", "category", "hlinkbase", "pntxta", "pntxtb", "pn"),
}
IGNORABLE_WITH_TEXT = {"shpinst", "shptxt", "shpgrp", "ud", "footnote", "pntext", "listtext"}

_CHARSETS = {
    **{77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "big5"},
    **{161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257"},
    **{204: "cp1251", 222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850"},
}


def charset_encoding(charset: int) -> str:
    """Encoding of a font's charset; empty for that of the document."""
    return _CHARSETS.get(charset, "")


def codepage_encoding(codepage: int) -> str:
    """Python's name of a Windows code page, cp1252 where there is none."""
    if codepage in (65001, 10000, 1361):
        return {65001: "utf-8", 10000: "mac_roman", 1361: "johab"}[codepage]
    try:
        "".encode(f"cp{codepage}")
    except LookupError:
        return "cp1252"
    return f"cp{codepage}"
