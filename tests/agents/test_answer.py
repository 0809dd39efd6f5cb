from agents.answer import cite
from memory.document import Document, Page, Section, Span


def book(*, paged: bool) -> Document:
    text = "Chapter 1\n\nA lamp.\n\nChapter 2\n\nA storm came."
    return Document(
        id="a" * 64,
        name="b.pdf",
        title="Lights",
        media_type="application/pdf",
        text=text,
        pages=(Page(0, "ix", Span(0, 18)), Page(1, "2", Span(20, 44))),
        sections=(Section("Chapter 1", 1, Span(0, 20)), Section("Chapter 2", 1, Span(20, 44))),
        paged=paged,
    )


def test_a_citation_names_page_printed_number_and_section():
    citation = cite(book(paged=True), Span(11, 18), 0.91234)
    assert citation.quote == "A lamp."
    assert citation.place == "Chapter 1, page 1 (printed ix), 25% in"
    assert cite(book(paged=True), Span(31, 44), 1.0).place == "Chapter 2, page 2, 70% in"


def test_without_pages_the_position_tells_the_place():
    citation = cite(book(paged=False), Span(31, 44), 1.0)
    assert (citation.page, citation.label) == (None, "")
    assert citation.place == "Chapter 2, 70% in"
