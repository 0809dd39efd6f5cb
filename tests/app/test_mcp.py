"""The MCP server as a client meets it: the real client, a real process, its real pipes."""

import asyncio
import sys

import pytest

pytest.importorskip("mcp", reason="needs the extra; make test-extras")
pytestmark = pytest.mark.extras


def talk(door, *arguments, say):
    """Starts ``gistree mcp`` and lets a client talk to it."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def run():
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "app.cli", "mcp", *map(str, arguments)],
            env=door.environment(),
        )
        async with (
            stdio_client(parameters) as (incoming, outgoing),
            ClientSession(incoming, outgoing) as session,
        ):
            await session.initialize()
            return await say(session)

    return asyncio.run(asyncio.wait_for(run(), 90))


def test_a_client_looks_around_and_asks(filled):
    async def say(session):
        tools = (await session.list_tools()).tools
        outline = await session.call_tool("outline", {})
        grep = await session.call_tool("grep", {"words": "whale oil"})
        told = []

        async def on_progress(progress, total, message):
            told.append(message)

        answer = await session.call_tool(
            "ask",
            {"question": "Which schooner struck the reef?"},
            progress_callback=on_progress,
        )
        return tools, outline, grep, answer, told

    tools, outline, grep, answer, told = talk(filled, say=say)
    assert {"outline", "search", "grep", "read", "gists", "ask"} == {tool.name for tool in tools}
    assert all(tool.annotations.readOnlyHint for tool in tools)
    assert "document 2" in outline.content[0].text
    [place] = grep.structuredContent["citations"]
    assert "whale oil" in place["quote"]
    assert place["title"] == "The Lamp"
    assert answer.structuredContent["found"]
    assert "Petrel" in answer.structuredContent["citations"][0]["quote"]
    assert "“" in answer.content[0].text
    assert any("searched" in line for line in told)


def test_a_client_reaches_no_document_outside_the_scope(filled):
    async def say(session):
        return (
            await session.call_tool("read", {"document": 2}),
            await session.call_tool("ask", {"question": "Which?", "document": 2}),
            await session.call_tool("grep", {"words": "Petrel"}),
            await session.call_tool("search", {"query": "the schooner Petrel"}),
        )

    read, ask, grep, search = talk(filled, "--doc", "well.txt", say=say)
    assert read.isError
    assert "document must be 1 to 1" in read.content[0].text
    assert ask.isError
    assert "does not stand there" in grep.content[0].text
    assert {c["title"] for c in search.structuredContent["citations"]} == {"well"}


def test_bad_calls_are_answered_in_words_and_the_server_goes_on(filled):
    async def say(session):
        wrong = await session.call_tool("grep", {"word": "Petrel"})
        unknown = await session.call_tool("delete", {})
        right = await session.call_tool("grep", {"words": "Petrel"})
        return wrong, unknown, right

    wrong, unknown, right = talk(filled, say=say)
    assert wrong.isError
    assert unknown.isError
    assert "there is no tool" in unknown.content[0].text
    assert not right.isError


def test_without_the_library_it_says_so(door, tmp_path):
    said = door("mcp", "--library", tmp_path / "nowhere")
    assert said.code == 1
    assert "nowhere" in said.err
