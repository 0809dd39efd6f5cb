"""What a library takes on the disk."""

import os
from pathlib import Path

from app.overview import room_bytes


def test_room_is_all_that_lies_in_the_folder(opened, lamp, monkeypatch):
    library = opened()
    library.add(lamp)
    folder = library.place.folder
    files = [path for path in folder.rglob("*") if path.is_file()]
    before = sum(path.stat().st_size for path in files)
    assert room_bytes(library) == before
    (folder / "files" / "more").write_bytes(b"x" * 1_000)
    assert room_bytes(library) == before + 1_000

    gone = folder / "files" / "gone"
    gone.write_bytes(b"x" * 7)
    lstat = os.lstat

    def goes(path):
        if Path(path) == gone:
            gone.unlink()
        return lstat(path)

    monkeypatch.setattr(os, "lstat", goes)
    assert room_bytes(library) == before + 1_000
    assert not gone.exists()
