"""A search costs no more when there are many documents: what hangs on their number is kept."""


def test_documents_are_listed_again_only_after_a_change(opened, lamp, well, monkeypatch):
    library = opened()
    library.add(lamp)
    listed = []
    entries, lacking = library._store.entries, library._store.without_vectors
    monkeypatch.setattr(library._store, "entries", lambda: listed.append("all") or entries())
    monkeypatch.setattr(
        library._store, "without_vectors", lambda name: listed.append(name) or lacking(name)
    )
    for _ in range(3):
        assert library.search("Where did the lamp burn?")
    assert listed == ["all", "hashing"]
    library.add(well)
    assert {each.document_id for each in library.search("a well and a lamp")} == set(
        library._everything()
    )
    assert len(library._everything()) == 2


def test_what_another_process_adds_and_deletes_is_searched_at_once(opened, lamp, well):
    mine, other = opened(), opened()
    mine.add(lamp)
    assert mine.search("Where did the lamp burn?")
    added = other.add(well)
    assert added.id in {each.document_id for each in mine.search("How deep is the well?")}
    other.delete(added.id)
    assert added.id not in {each.document_id for each in mine.search("How deep is the well?")}
