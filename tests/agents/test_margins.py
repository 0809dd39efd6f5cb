import json

from desks import desk_of, document_of

from agents.readers.margins import MarginsReader
from agents.steps import Degraded, Noted
from serving.scripted import ScriptedLLM

ONE = "Starbuck was the chief mate of the Pequod, and a careful man of Nantucket all his days."
TWO = "The weather was fair for a week, and nothing at all befell the ship or anybody in her."
THREE = "Ahab was her captain. He had lost a leg to the white whale off Japan, and hunted it since."
TALE = f"{ONE}\n\n{TWO}\n\n{THREE}"
QUESTION = "Who was the captain of the Pequod?"
YES, NO = 0, 2  # of yes, Yes, no, No


def note(text):
    return json.dumps({"note": text})


def read(model, *texts, **options):
    documents = [document_of(f"Tale {n}", text) for n, text in enumerate(texts or [TALE], 1)]
    desk = desk_of(model, *documents, budget_tokens=60)
    return list(MarginsReader(**({"part_tokens": 26} | options)).read(desk, QUESTION))


def test_only_relevant_parts_are_noted_and_read_again():
    model = ScriptedLLM([note("Ahab was her captain."), "Ahab."], choices=[NO, NO, YES, YES])
    steps = read(model)
    assert [s.relevant for s in steps if isinstance(s, Noted)] == [False, False, True]
    prompt = model.seen[-1][-1].content
    assert "Ahab was her captain." in prompt
    assert TWO not in prompt
    assert steps[-1].found
    assert steps[-1].citations[0].quote == "Ahab was her captain."


def test_the_part_stands_before_the_question():
    first, second = (
        ScriptedLLM(["Ahab."], choices=[NO, NO, NO, YES]),
        ScriptedLLM(["x"], choices=[NO, NO, NO, YES]),
    )
    read(first)
    documents = document_of("Tale 1", TALE)
    list(MarginsReader(part_tokens=26).read(desk_of(second, documents, budget_tokens=60), "Why?"))
    one, two = first.seen[0], second.seen[0]
    assert one[0] == two[0]
    shared = one[1].content[: one[1].content.index(QUESTION)]
    assert ONE in shared
    assert two[1].content.startswith(shared)


def test_a_note_that_the_part_does_not_say_is_handed_back_once():
    made_up, right = note("The captain was Nemo of the Nautilus."), note("Ahab was her captain.")
    model = ScriptedLLM([made_up, right, "Ahab."], choices=[NO, NO, YES, YES])
    steps = read(model)
    assert "the part does not say so" in model.seen[4][-1].content
    assert not any(isinstance(s, Degraded) for s in steps)
    model = ScriptedLLM([made_up, made_up, "Ahab was the captain."], choices=[NO, NO, YES, YES])
    steps = read(model)
    assert any(isinstance(s, Degraded) and s.what == "keeps part 3 without a note" for s in steps)
    assert "Nemo" not in model.seen[-1][-1].content
    assert steps[-1].found


def test_where_no_part_is_relevant_the_search_answers():
    model = ScriptedLLM(["Ahab was her captain."], choices=[NO, NO, NO, YES])
    steps = read(model)
    assert any(isinstance(s, Degraded) and "search" in s.what for s in steps)
    assert steps[-1].found


def test_notes_of_several_documents_say_which():
    model = ScriptedLLM([note("Ahab was her captain."), "Ahab."], choices=[NO, YES, YES])
    read(model, ONE, THREE)
    assert "- Tale 2, " in model.seen[-1][-1].content


def test_a_budget_with_no_room_beside_the_notes_leaves_the_notes():
    model = ScriptedLLM([note("Ahab was her captain."), "Ahab."], choices=[NO, NO, YES, YES])
    desk = desk_of(model, document_of("Tale 1", TALE), budget_tokens=12)
    answer = list(MarginsReader(part_tokens=26).read(desk, QUESTION))[-1]
    assert answer.found
    assert "Ahab was her captain." in model.seen[-1][-1].content
