"""What a person's word for a document means, and when it is not enough."""

from types import SimpleNamespace

import pytest

from app.lookup import find
from memory.errors import DocumentNotFound


def entry(key, name, title=None):
    return SimpleNamespace(id=key, name=name, title=title or name.partition(".")[0])


ENTRIES = [
    entry("1984aaaabbbb", "10.txt"),
    entry("ffff00001111", "Persuasion.txt", "Persuasion, by Jane Austen"),
    entry("eeee00001111", "lease-2024.pdf", "Lease of the mill"),
]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("10.txt", "10.txt"),
        ("persuasion", "Persuasion.txt"),
        ("austen", "Persuasion.txt"),
        ("the mill", "lease-2024.pdf"),
        ("2024", "lease-2024.pdf"),
        ("eeee", "lease-2024.pdf"),
    ],
)
def test_to_read_a_document_the_beginning_of_a_word_is_enough(said, name):
    assert find(ENTRIES, said).name == name


@pytest.mark.parametrize("said", ["0.txt", "suasion", "0", ""])
def test_the_middle_of_a_word_means_no_document(said):
    with pytest.raises(DocumentNotFound, match="holds no document"):
        find(ENTRIES, said)


@pytest.mark.parametrize("said", ["persuasion", "the mill", "2024", "1984"])
def test_where_it_cannot_be_undone_a_part_is_refused(said):
    with pytest.raises(DocumentNotFound, match="holds no document"):
        find(ENTRIES, said, exact=True)


@pytest.mark.parametrize("said", ["10.txt", "10", "ffff00001111", "ffff0000", "Lease of the mill"])
def test_where_it_cannot_be_undone_a_whole_name_or_id_is_taken(said):
    assert find(ENTRIES, said, exact=True)


def test_the_refusal_names_what_comes_near():
    with pytest.raises(DocumentNotFound, match=r"Persuasion\.txt"):
        find(ENTRIES, "persuasion", exact=True)
