"""One library for all, or one for each person."""

import pytest

from app.service import Service, Services
from app.settings import Settings
from serving.errors import GistreeError


@pytest.fixture
def services(tmp_path):
    services = Services(
        Settings(library=str(tmp_path / "all"), libraries=str(tmp_path / "each"), models=tmp_path)
    )
    yield services
    services.close()


def test_where_nobody_logs_in_there_is_one_library(opened):
    library = opened()
    services = Services(everybodys=Service(library=library))
    assert not services.wants_login
    assert services.of("anybody").library is services.of("").library is library
    assert services.landing.folder == library.place.folder / "incoming"


def test_each_person_has_a_library_of_their_own(services, tmp_path):
    assert services.wants_login
    one, two = services.of("issuer 1"), services.of("issuer 2")
    assert one is services.of("issuer 1")
    assert one.library.place.folder != two.library.place.folder
    assert one.library.engines is two.library.engines  # a model is not loaded for each
    with pytest.raises(ValueError, match="nobody is named"):
        services.of("")
    assert not (tmp_path / "all").exists()


@pytest.mark.parametrize("person", ["../../etc", "a/b", "\x00", "ä" * 5_000])
def test_a_name_is_never_a_path(services, tmp_path, person):
    folder = services.of(person).library.place.folder
    assert folder.parent == tmp_path / "each" / "people"


def test_what_has_come_becomes_a_persons_own(services):
    landed = services.landing.receive("tale.txt", [b"A tale."])
    person, other = services.of("issuer 1"), services.of("issuer 2")
    upload = person.uploads.from_page("tale.txt", landed.receipt())
    assert person.uploads.path(upload.id).read_bytes() == b"A tale."
    assert not list(services.landing.folder.iterdir())
    again = other.uploads.from_page("x.txt", landed.receipt())  # a receipt of somebody else's
    assert other.uploads.path(again.id).read_bytes() == landed.receipt()  # is but a file


def test_a_document_that_looks_like_a_receipt_is_but_a_file(services):
    uploads = services.of("issuer 1").uploads
    data = b'{"gistree-upload": "x", "and": ' + b"[" * 100_000
    assert uploads.path(uploads.from_page("x.json", data).id).read_bytes() == data


def test_nobody_changes_the_model_of_all(services):
    with pytest.raises(GistreeError, match="several people share this model"):
        services.of("issuer 1").use_model("http://127.0.0.1:9#parrot")


def test_interrupted_work_goes_on_whoever_ordered_it(services):
    services.of("issuer 1").library.jobs.add(
        services.of("issuer 1").uploads.receive("tale.txt", [b"A tale."])
    )
    services.close()
    services.work()
    assert len(services._services) == 1
    assert len(services.of("issuer 1").library.jobs.list()) == 1
