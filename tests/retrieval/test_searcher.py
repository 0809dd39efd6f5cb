import threading

import numpy as np
import pytest
from fakes import FakeShelf, HashingEmbedder

from retrieval import searcher as module
from retrieval.dense_index import DenseIndex
from retrieval.errors import EmbedderMismatch
from retrieval.fusion import Fusion
from retrieval.searcher import Searcher

SEA = "The white whale took his leg.\n\nThe calm sea lay still at night."
LAW = "The party may terminate this agreement.\n\nA clause about notice of thirty days."


@pytest.fixture
def shelf():
    shelf = FakeShelf()
    shelf.add("sea", SEA)
    shelf.add("law", LAW)
    return shelf


@pytest.fixture
def searcher(tmp_path, shelf):
    searcher = Searcher(shelf, shelf.embedder, tmp_path / "index")
    yield searcher
    searcher.close()


def texts(shelf, passages):
    sources = {"sea": SEA, "law": LAW}
    return [each.span.of(sources[each.document_id]) for each in passages]


def test_passages_come_with_their_places_the_best_first(searcher, shelf):
    passages = searcher.search("Who lost a leg to the whale?", top_k=3)
    assert texts(shelf, passages)[0] == "The white whale took his leg."
    assert len(passages) == 3
    assert sorted((p.score for p in passages), reverse=True) == [p.score for p in passages]


def test_a_search_keeps_to_the_documents_that_are_named(searcher):
    passages = searcher.search("Who lost a leg to the whale?", documents=["law"])
    assert {passage.document_id for passage in passages} == {"law"}
    assert searcher.search("whale", documents=[]) == []
    assert searcher.search("whale", documents=["no such"]) == []
    assert len(searcher.search("whale", documents=["law", "sea", "no such"])) == 4


def test_the_neighbour_of_a_good_passage_comes_next_but_not_another_document_s(tmp_path):
    shelf = FakeShelf()
    shelf.add("before", "Rain fell on the hills.\n\nThe last words of another document.")
    shelf.add("sea", "Whale leg captain harpoon.\n\nHe never spoke of that again.")
    for number in range(60):  # more than either ranking holds
        shelf.add(f"other{number}", f"Chairs, tables and spoon number {number}.")
    searcher = Searcher(shelf, shelf.embedder, tmp_path / "index")
    passages = searcher.search("whale leg captain harpoon", top_k=2)
    assert [passage.document_id for passage in passages] == ["sea", "sea"]
    searcher.close()


def test_a_stretch_on_the_topic_goes_before_the_third_lone_mention(tmp_path):
    paragraphs = [f"Nothing but filler number {number} here." for number in range(60)]
    for lone in (5, 50, 58):
        paragraphs[lone] = "Harbour dues."
    for number in range(20, 30):
        paragraphs[number] = f"Harbour dues were debated, speaker {number}."
    shelf = FakeShelf()
    shelf.add("minutes", "\n\n".join(paragraphs))
    found = {}
    for stretches in (True, False):
        fusion = Fusion(lift=0.0, stretches=stretches)
        searcher = Searcher(shelf, shelf.embedder, tmp_path / str(stretches), fusion=fusion)
        passages = searcher.search("What of the harbour dues?", top_k=3)
        found[stretches] = [paragraphs.index(p.span.of("\n\n".join(paragraphs))) for p in passages]
        searcher.close()
    assert found[False] == [5, 5, 5]  # ``index`` names the first of the three that are alike
    assert found[True][:2] == [5, 5]
    assert 20 <= found[True][2] < 30


def test_it_follows_what_is_added_and_deleted(searcher, shelf):
    searcher.search("whale")
    shelf.add("zoo", "A zebra and a quokka.")
    assert searcher.search("zebra and quokka")[0].document_id == "zoo"
    shelf.remove("zoo")
    assert all(each.document_id != "zoo" for each in searcher.search("Where is the quokka?"))


def test_a_document_that_came_back_with_new_chunk_numbers_is_found(searcher, shelf):
    searcher.search("whale")
    shelf.remove("sea")
    shelf.add("sea", SEA)  # one move of the generation would hide it, two even more so
    best = searcher.search("Who lost a leg to the whale?")[0]
    assert (best.document_id, best.chunk_id) == ("sea", 5)


def test_two_searchers_on_one_folder_agree(searcher, shelf, tmp_path):
    other = Searcher(shelf, shelf.embedder, tmp_path / "index")
    shelf.add("zoo", "A zebra and a quokka.")
    assert searcher.search("quokka") == other.search("quokka")
    other.close()
    again = Searcher(shelf, shelf.embedder, tmp_path / "index")
    assert again.search("quokka") == searcher.search("quokka")
    again.close()


def test_what_another_process_deleted_is_not_written_back(shelf, tmp_path):
    searcher = Searcher(shelf, shelf.embedder, tmp_path / "index")
    searcher.search("whale")
    shelf.remove("law")
    searcher.close()
    manifest = tmp_path / "index" / "dense" / "manifest.json"
    assert not manifest.exists() or "law" not in manifest.read_text()


def test_vectors_of_another_embedder_are_refused_in_words(shelf, tmp_path):
    searcher = Searcher(shelf, HashingEmbedder(16, name="other"), tmp_path / "index")
    for _ in range(2):
        with pytest.raises(EmbedderMismatch, match="'other'"):
            searcher.search("whale")
    for document_id in ("sea", "law"):
        shelf.embed(document_id, HashingEmbedder(16, name="other"))
    assert searcher.search("Who lost a leg to the whale?")[0].document_id == "sea"
    searcher.close()


@pytest.mark.parametrize("query", ["", "  \n", "?!"])
def test_queries_without_a_word_do_no_harm(searcher, query):
    assert len(searcher.search(query)) in (0, 4)


def test_a_query_of_100_000_characters_is_cut_to_its_ends(shelf, tmp_path):
    seen = []

    class Watched(HashingEmbedder):
        def embed_query(self, query):
            seen.append(len(query))
            return super().embed_query(query)

    searcher = Searcher(shelf, Watched(), tmp_path / "index")
    query = "word\ud800\x00 " * 14_000 + "Who lost a leg to the whale?"
    assert searcher.search(query)[0].document_id == "sea"
    assert seen[-1] < 5_000
    searcher.close()


def test_an_empty_library_has_no_passages(tmp_path):
    shelf = FakeShelf()
    searcher = Searcher(shelf, shelf.embedder, tmp_path)
    assert searcher.search("whale") == []
    assert searcher.search("whale", documents=[]) == []
    searcher.close()


def test_a_reranker_has_the_last_word(shelf, tmp_path):
    class LikesNotice:
        def scores(self, question, passages):
            return [float("notice" in passage) for passage in passages]

    searcher = Searcher(shelf, shelf.embedder, tmp_path, reranker=LikesNotice())
    passages = searcher.search("Who lost a leg to the whale?", top_k=2)
    assert "notice" in texts(shelf, passages)[0]
    assert [p.score for p in passages] == [1.0, 0.0]
    searcher.close()


def test_where_the_folder_cannot_be_written_a_temporary_one_serves(shelf, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_writable", lambda _: False)
    searcher = Searcher(shelf, shelf.embedder, tmp_path / "index")
    borrowed = searcher._borrowed.name
    assert searcher.search("Who lost a leg to the whale?")[0].document_id == "sea"
    assert not (tmp_path / "index").exists()
    searcher.close()
    assert not module.Path(borrowed).exists()


def test_threads_search_while_documents_come_and_go(searcher, shelf):
    failures = []

    def search():
        try:
            for turn in range(30):
                assert searcher.search(f"whale {turn}", documents=["sea"])
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(5):
        shelf.add(f"more{turn}", "A whale and a zebra.")
        shelf.remove(f"more{turn}")
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_best_of_many_is_found_through_cells(tmp_path, monkeypatch):
    monkeypatch.setitem(DenseIndex.__init__.__kwdefaults__, "flat_most", 200)
    shelf = FakeShelf()
    for number in range(40):
        shelf.add(
            f"d{number}", "\n\n".join(f"word{number} item{n} about things" for n in range(20))
        )
    searcher = Searcher(shelf, shelf.embedder, tmp_path)
    shelf_texts = shelf.chunk_texts("d17")
    searcher.sync()
    searcher._vectors._index.settle()
    assert searcher._vectors.kind == "cells"
    best = searcher.search("word17 item3 about things")[0]
    place = int(np.flatnonzero(shelf.chunk_ids("d17") == best.chunk_id)[0])
    assert "item3" in shelf_texts[place][1]
    searcher.close()
