"""Where questions have led, out of the chats."""

from app.visits import visits
from memory.document import Span


def test_the_latest_questions_that_led_into_a_document_come_first(opened, lamp):
    library = opened("The Petrel sank.", "The Petrel sank.", "NOT FOUND")
    entry = library.add(lamp)
    assert visits(library, entry.id) == []
    talks = library.conversations
    chat = talks.begin()
    for question in ("What sank?", "Which ship struck the reef?", "Who was her owner?"):
        assert talks.wait(talks.ask(chat, question, reader="oprag").id, 30)
    first, second = visits(library, entry.id)  # the third found nothing
    assert first.question == "Which ship struck the reef?"
    assert second.question == "What sank?"
    text = library.document(entry.id).text
    assert any("Petrel" in span.of(text) for span in first.spans)
    assert first.touches(first.spans[0])
    assert not first.touches(Span(len(text), len(text) + 1))
    assert visits(library, entry.id, most=1) == [first]
    assert visits(library, "another") == []
