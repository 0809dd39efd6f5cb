import pytest

from memory.characters import clean
from memory.encodings import declared_encoding, decode

RUSSIAN = "Данное руководство описывает сборку пакета и предназначено для обычных людей. "
JAPANESE = "この文書はシステムの管理者のための案内書です。名前はまだ無い。"
CHINESE = "这本书是自由的；你可以在与自由软件指导方针兼容的任意版本的许可证的条款下重新分发。"
TAIWANESE = "這是一份繁體中文的文件，用來測試編碼的偵測。我們希望它能夠正確地讀取所有的文字。"
KOREAN = "한국어 문서는 여러 가지 인코딩으로 저장될 수 있다. 이 문서는 그것을 시험한다. "
FRENCH = "Où est passé l’été ? Ça m’a coûté 5 € à la fête, déjà vu. "
POLISH = "Zażółć gęślą jaźń, powiedział wódz do swoich żołnierzy. "
GREEK = "Αυτό είναι ένα ελληνικό κείμενο για δοκιμή της κωδικοποίησης. "


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *((RUSSIAN, e) for e in ("koi8-r", "cp1251", "cp866", "iso8859_5", "utf-16-be", "utf-16")),
        *((JAPANESE, e) for e in ("euc_jp", "cp932", "iso2022_jp", "utf-16-le", "utf-8-sig")),
        *((CHINESE, e) for e in ("gb18030", "gb2312")),
        (TAIWANESE, "big5"),
        (KOREAN, "cp949"),
        (FRENCH, "cp1252"),
        (POLISH, "cp1250"),
        (POLISH, "iso8859_2"),
        (GREEK, "cp1253"),
    ],
)
def test_legacy_encodings_are_told_from_the_bytes(text, encoding):
    text = f"{text}\n" * 20
    decoded = decode(text.encode(encoding))
    assert decoded.text == text
    assert not decoded.problems


def test_a_fitting_declaration_decides_and_a_lie_does_not():
    assert decode("naïve".encode("cp1252"), "iso-8859-1").text == "naïve"
    assert decode("наивный".encode(), "iso-8859-1").text == "наивный"
    assert decode(RUSSIAN.encode("koi8-r"), "no-such-charset").text == RUSSIAN


def test_declarations_of_xml_and_html():
    assert declared_encoding(b"<?xml version='1.0' encoding='koi8-r'?>") == "koi8-r"
    assert declared_encoding(b'<meta http-equiv=x content="text/html; charset=EUC-JP">') == "EUC-JP"
    assert declared_encoding(b"<p>nothing") == ""


def test_joiners_stay_where_they_spell():
    assert clean("می\u200cخواهم") == "می\u200cخواهم"
    assert clean("क्\u200dष") == "क्\u200dष"
    assert clean("a\u200cb") == "ab"


def test_hidden_tags_overrides_and_surrogates_go():
    assert clean("a\U000e0041\U000e0042b \u202eevil\u202c \ud800") == "ab evil \ufffd"


def test_line_ends_are_line_feeds_and_escapes_go():
    assert clean("a\r\nb\rc\u2028d\x1b[31me\x1b]0;t\x07\x00") == "a\nb\nc\nde"
