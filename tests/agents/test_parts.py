from dataclasses import replace

from desks import desk_of, document_of

from agents.parts import document_tokens, named, plan
from memory.document import Span
from retrieval.types import Passage
from serving.scripted import ScriptedLLM

TEXT = "\n\n".join(
    f"Paragraph number {n} says nothing much about anything at all." for n in range(60)
)


def desk(*texts, budget_tokens=40):
    documents = [document_of(f"Doc {n}", text) for n, text in enumerate(texts, 1)]
    return desk_of(ScriptedLLM([]), *documents, budget_tokens=budget_tokens)


def found(desk, number, *, at, score=1.0):
    return Passage(number, desk.documents[0], Span(at, at + 10), score)


def test_the_parts_cover_all_documents_in_order_and_keep_the_budget():
    desk_ = desk(TEXT, "Another tale.")
    reading = plan(desk_, [])
    assert reading.left_out == 0
    assert list(reading.steps(desk_)) == []
    assert [p.document_id for p in reading.parts] == sorted(
        (p.document_id for p in reading.parts), key=desk_.documents.index
    )
    first = [p.span for p in reading.parts if p.document_id == desk_.documents[0]]
    assert first == sorted(first)
    assert "".join(s.of(TEXT) for s in first).replace("\n", "") == TEXT.replace("\n", "")
    assert all(len(span.of(TEXT).split()) <= 40 for span in first)


def test_where_only_some_are_read_the_best_found_are_among_them_and_no_stretch_goes_unseen():
    desk_ = desk(TEXT)
    at = TEXT.index("number 50")
    reading = plan(desk_, [found(desk_, 1, at=at)], max_parts=6)
    assert len(reading.parts) == 6
    assert reading.left_out == len(plan(desk_, []).parts) - 6
    assert any(part.span.start <= at < part.span.end for part in reading.parts)
    (step,) = reading.steps(desk_)
    assert len(step.places) == 6
    assert f"6 of {6 + reading.left_out} parts" in str(step)
    starts = [part.span.start for part in reading.parts]
    assert starts == sorted(set(starts))
    assert (
        max(b - a for a, b in zip([0, *starts], [*starts, len(TEXT)], strict=True)) < len(TEXT) / 2
    )


def test_of_a_large_corpus_only_what_the_search_finds_is_gone_through():
    texts = [f"Tale {n} is short." for n in range(100)]
    desk_ = desk(*texts)
    keys = desk_.documents
    reading = plan(
        desk_, [Passage(1, keys[70], Span(0, 5), 1.0), Passage(2, keys[3], Span(0, 5), 0.9)]
    )
    assert [part.document_id for part in reading.parts] == [keys[3], keys[70]]
    (step,) = reading.steps(desk_)
    assert "98 documents" in str(step)


def test_a_part_says_where_it_is_in_few_words():
    text = f"Chapter 1 {'very ' * 8}long\n\nOne sentence."
    desk_ = desk(text)
    part = plan(desk_, []).parts[0]
    assert len(named(desk_, part)) < 80
    assert named(desk(text, "Other."), part).startswith("Doc 1, ")


def test_tokens_are_counted_by_samples():
    desk_ = desk(TEXT * 50)
    document = desk_.document(desk_.documents[0])
    exact = len(document.text.split())
    assert 0.9 * exact < document_tokens(desk_, document) < 1.1 * exact
    empty = replace(document, text="")
    assert document_tokens(desk_, empty) == 0
