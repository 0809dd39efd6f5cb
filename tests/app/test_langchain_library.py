"""A library as LangChain sees it, with the real LangChain."""

import asyncio
import time

import pytest

pytest.importorskip("langchain", reason="needs the extra; make test-extras")
pytestmark = pytest.mark.extras


def test_a_retriever_gives_documents_that_stand_in_the_source(opened, lamp, well):
    from app.langchain import LibraryRetriever

    library = opened()
    library.add(lamp)
    library.add(well)
    found = LibraryRetriever(library=library, top_k=2).invoke("Which schooner struck the reef?")
    assert "Petrel" in found[0].page_content
    assert len(found) == 2
    place = found[0].metadata
    text = library.document(place["document"]).text
    assert text[place["start"] : place["end"]] == found[0].page_content
    assert place["title"] == "The Lamp"
    assert "position" in place


def test_a_retriever_keeps_to_its_documents(opened, lamp, well):
    from app.langchain import LibraryRetriever

    library = opened()
    library.add(lamp)
    only = library.add(well)
    found = LibraryRetriever(library=library, documents=(only.id,)).invoke("schooner reef storm")
    assert {document.metadata["document"] for document in found} == {only.id}


def test_tools_show_the_source_and_bring_it_along(opened, lamp):
    from app.langchain import library_tools

    library = opened()
    library.add(lamp)
    tools = {tool.name: tool for tool in library_tools(library)}
    assert {"outline", "search", "grep", "read", "gists"} == set(tools)
    assert "The Lamp" in tools["outline"].invoke({})
    call = {"name": "grep", "args": {"words": "whale oil"}, "id": "1", "type": "tool_call"}
    message = tools["grep"].invoke(call)
    assert "stands there once" in message.content
    assert "whale oil" in message.artifact[0].page_content


def test_a_tool_reaches_no_document_outside_its_scope(opened, lamp, well):
    from app.langchain import library_tools

    library = opened()
    library.add(lamp)
    only = library.add(well)
    tools = {tool.name: tool for tool in library_tools(library, [only.id])}
    assert "cannot be used" in tools["read"].invoke({"document": 2})
    assert "does not stand there" in tools["grep"].invoke({"words": "Petrel"})


def test_a_reader_runs_in_a_chain(opened, lamp):
    from langchain_core.runnables import RunnableLambda

    from agents.answer import Answer
    from app.langchain import LibraryReader

    library = opened("The Petrel struck the reef.", "The Petrel struck the reef.")
    library.add(lamp)
    reader = LibraryReader(library, reader="oprag")
    chain = reader | RunnableLambda(lambda answer: answer.citations[0].quote)
    assert "Petrel" in chain.invoke("Which schooner struck the reef?")
    steps = list(reader.stream("Which schooner struck the reef?"))
    assert isinstance(steps[-1], Answer)
    assert len(steps) > 3


def test_a_reader_streams_its_steps_to_an_event_loop(opened, lamp):
    from agents.answer import Answer
    from app.langchain import LibraryReader

    library = opened(*["The Petrel struck the reef."] * 3)
    library.add(lamp)
    reader = LibraryReader(library, reader="oprag")
    question = "Which schooner struck the reef?"

    async def talk():
        steps = [step async for step in reader.astream(question)]
        some = reader.astream(question)
        first = await anext(some)
        await some.aclose()
        return steps, first, await reader.ainvoke(question)

    steps, first, answer = asyncio.run(talk())
    assert isinstance(steps[-1], Answer)
    assert len(steps) > 3
    assert str(first) == str(steps[0])
    assert answer.found


def test_a_step_that_is_awaited_no_longer_ends_before_the_reading_is_closed():
    from app.langchain import LibraryReader

    told = []

    class Slow:
        def read(self, question, **options):
            try:
                time.sleep(0.3)
                told.append("step")
                yield "step"
            finally:
                told.append("closed")

    async def give_up():
        steps = LibraryReader(Slow()).astream("Which schooner?")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(steps), 0.05)
        await steps.aclose()

    asyncio.run(give_up())
    assert told == ["step", "closed"]


def test_an_agent_of_langchains_can_use_the_tools(opened, lamp):
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    from app.langchain import library_tools

    class Player(GenericFakeChatModel):
        def bind_tools(self, tools, **options):
            return self

    library = opened()
    library.add(lamp)
    call = {"name": "grep", "args": {"words": "Petrel"}, "id": "1", "type": "tool_call"}
    chat = Player(messages=iter([AIMessage("", tool_calls=[call]), "The Petrel."]))
    talk = create_agent(chat, library_tools(library)).invoke({"messages": [("user", "Which?")]})
    shown = next(message for message in talk["messages"] if message.type == "tool")
    assert "Petrel" in shown.artifact[0].page_content
    assert talk["messages"][-1].content == "The Petrel."
