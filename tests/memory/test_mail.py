from email.message import EmailMessage

import pytest
from parsed import blocks, pages, parse, problems, texts, written

from memory.errors import EmptyDocument


def message(subject, text="", html=""):
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Mira <m@sea.example>", "a@b.example", subject
    if text:
        mail.set_content(text)
    if html:
        (mail.add_alternative if text else mail.set_content)(html, subtype="html")
    return mail


def test_a_message_with_its_sender_and_an_encoded_subject(tmp_path):
    mail = message("Öl für die Lampe", "Größe: drei Liter.\n")
    parts = parse("mail", written(tmp_path, "a.eml", mail.as_bytes()))
    assert texts(parts, "heading") == ["Öl für die Lampe"]
    assert "From: Mira <m@sea.example>" in texts(parts)[1]
    assert texts(parts)[2] == "Größe: drei Liter."


def test_html_is_read_where_there_is_no_plain_text(tmp_path):
    mail = message("x", html="<p>Only <b>here</b>.</p><p style='display:none'>spy</p>")
    assert texts(parse("mail", written(tmp_path, "a.eml", mail.as_bytes())))[2:] == ["Only here."]


def test_attachments_are_named(tmp_path):
    mail = message("x", "See the file.")
    mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="plan.pdf")
    assert (
        "plan.pdf" in problems(parse("mail", written(tmp_path, "a.eml", mail.as_bytes())))[0].what
    )


def test_each_message_of_a_box_is_a_part(tmp_path):
    one = message("One", "First.\n\nFrom here on it is still one.\n").as_bytes()
    one = one.replace(b"\nFrom here", b"\n>From here")
    two = message("Two", "Second.\n").as_bytes()
    box = b"From m@sea Tue Dec  1 10:00:00 2020\n" + one + b"\nFrom m@sea Tue\n" + two
    parts = parse("mail", written(tmp_path, "a.mbox", box))
    assert len(pages(parts)) == 2
    assert [b.text for b in blocks(parts, "heading")] == ["One", "Two"]
    assert "From here on it is still one." in texts(parts)


def test_zero_bytes(tmp_path):
    with pytest.raises(EmptyDocument):
        parse("mail", written(tmp_path, "a.eml", ""))
