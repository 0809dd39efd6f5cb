import pytest
from parsed import SHARED, shared, written, zipped

from memory.errors import DocumentNotFound, EmptyDocument, PasswordNeeded, UnsupportedFormat
from memory.formats import sniff


@pytest.mark.parametrize("folder", ["good", "nasty"])
def test_every_shared_file_has_its_parser(folder):
    shared(folder)
    by_suffix = {".txt": "text", ".pdf": "pdf", ".html": "html", ".epub": "epub"}
    by_suffix |= {".docx": "docx", ".odt": "odt", ".rtf": "rtf"}
    odd = {"wrong-ext-pdf-as-docx.docx": "pdf", "wrong-ext-html-as-pdf.pdf": "html"}
    for path in sorted((SHARED / "docs" / folder).iterdir()):
        if path.suffix == ".doc" or path.stat().st_size == 0:
            continue
        assert sniff(path) == odd.get(path.name, by_suffix[path.suffix]), path.name


@pytest.mark.parametrize(
    ("name", "content", "parser"),
    [
        ("a", "Just words.", "text"),
        ("a.md", "<p align=center>Logo</p>\n\n# Title", "markdown"),
        ("a.md", "<!DOCTYPE html><html>", "html"),
        ("a.txt", "<!-- saved -->\n<HTML lang=en>", "html"),
        ("a.txt", "A PDF begins with %PDF-1.7 and so on.", "text"),
        ("a.pdf", b"junk\r\n%PDF-1.4\n%%EOF", "pdf"),
        ("a.dat", b"\xef\xbb\xbf{\\rtf1 x}", "rtf"),
        ("a.csv", "a,b\n", "csv"),
        ("a.eml", "From: a@b.example\n\nx", "mail"),
        ("a.ipynb", '{"cells": []}', "notebook"),
        ("a.TXT", "Größe".encode("utf-16"), "text"),
    ],
)
def test_content_decides_before_the_name(tmp_path, name, content, parser):
    assert sniff(written(tmp_path, name, content)) == parser


@pytest.mark.parametrize(
    ("files", "parser"),
    [
        ({"mimetype": "application/epub+zip"}, "epub"),
        ({"mimetype": "application/vnd.oasis.opendocument.text"}, "odt"),
        ({"word/document.xml": ""}, "docx"),
        ({"ppt/presentation.xml": ""}, "llama_index"),
        ({"x.opf": ""}, "epub"),
    ],
)
def test_packages_are_told_by_what_they_hold(tmp_path, files, parser):
    assert sniff(zipped(tmp_path, "a.zip", files)) == parser


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.png", b"\x89PNG\r\n", "an image"),
        ("a.gz", b"\x1f\x8b\x08", "a packed file"),
        ("a.mobi", b"x" * 60 + b"BOOKMOBI", "Kindle"),
        ("a.bin", bytes(range(32)) * 40, "not text"),
        ("a.fb2", "<?xml version='1.0'?><FictionBook>", "FictionBook"),
    ],
)
def test_what_is_not_read_is_named_with_a_remedy(tmp_path, name, content, said):
    with pytest.raises(UnsupportedFormat, match=said) as refusal:
        sniff(written(tmp_path, name, content))
    assert "EPUB" in str(refusal.value)


def test_old_word_files_say_what_to_do():
    with pytest.raises(UnsupportedFormat, match="save it as DOCX"):
        sniff(shared("nasty/legacy-word97.doc"))


def test_office_files_with_a_password_say_so(tmp_path):
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le")
    with pytest.raises(PasswordNeeded, match="save it without"):
        sniff(written(tmp_path, "a.docx", ole))


def test_zip_archives_folders_and_missing_files(tmp_path):
    with pytest.raises(UnsupportedFormat, match="unpack it"):
        sniff(zipped(tmp_path, "a.zip", {"x.txt": "x"}))
    with pytest.raises(UnsupportedFormat, match="folder"):
        sniff(tmp_path)
    with pytest.raises(DocumentNotFound):
        sniff(tmp_path / "none")
    with pytest.raises(EmptyDocument):
        sniff(written(tmp_path, "a.txt", ""))
