"""A library as LlamaIndex sees it, with the real LlamaIndex."""

import asyncio

import pytest

pytest.importorskip("llama_index.core", reason="needs the extra; make test-extras")
pytestmark = [
    pytest.mark.extras,
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),
]


def test_a_retriever_gives_nodes_that_stand_in_the_source(opened, lamp, well):
    from app.llama_index import LibraryRetriever

    library = opened()
    library.add(lamp)
    only = library.add(well)
    found = LibraryRetriever(library, top_k=2).retrieve("Which schooner struck the reef?")
    assert "Petrel" in found[0].text
    node = found[0].node
    source = library.document(node.ref_doc_id).text
    assert source[node.start_char_idx : node.end_char_idx] == found[0].text
    inside = LibraryRetriever(library, documents=[only.id]).retrieve("schooner reef")
    assert {each.node.ref_doc_id for each in inside} == {only.id}


def test_a_query_engine_answers_with_its_sources(opened, lamp):
    from app.llama_index import LibraryQueryEngine

    library = opened("The Petrel struck the reef.", "NOT FOUND", "The Petrel struck the reef.")
    library.add(lamp)
    engine = LibraryQueryEngine(library, reader="oprag")
    response = engine.query("Which schooner struck the reef?")
    assert str(response) == "The Petrel struck the reef."
    assert response.metadata["found"]
    assert "Petrel" in response.source_nodes[0].text
    unknown = engine.query("Who painted the boat?")
    assert not unknown.metadata["found"]
    again = asyncio.run(engine.aquery("Which schooner struck the reef?"))
    assert str(again) == str(response)


def test_documents_of_a_loader_become_documents_of_the_library(opened, tmp_path, lamp):
    from llama_index.core import Document, SimpleDirectoryReader

    from app.llama_index import add_documents

    library = opened()
    loaded = SimpleDirectoryReader(input_files=[lamp]).load_data()
    paged = [
        Document(
            text=f"{word} stands on its page.",
            metadata={"file_path": "/a/b.pdf", "file_name": "b.pdf", "author": "Orlov"},
        )
        for word in ("First", "Second")
    ]
    titled = Document(text="A letter of no file.", metadata={"title": "A letter"})
    entries = add_documents(library, [*loaded, *paged, titled], tag_fields=["author"])
    assert [entry.title for entry in entries] == ["The Lamp", entries[1].title, "A letter"]
    assert entries[1].num_pages == 2
    assert entries[1].tags == ("author: Orlov",)
    found = library.search("Second page", documents=[entries[1].id], top_k=1)
    assert "Second stands on its page." in found[0].quote
    assert found[0].page in (1, 2)
