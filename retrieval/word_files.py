"""Whether the files of the word index are as they were written, by the checksum in each."""

import json
import struct
import zlib
from pathlib import Path

_PARTS = ("term", "idx", "pos", "fieldnorm", "fast", "store")
"""Files that each segment of the index has."""
_END = struct.Struct("<II")  # length of the JSON before it, and tantivy's mark
_MARK = 1337
_BLOCK_BYTES = 1 << 20


def damaged(folder: Path) -> list[str]:
    """Names of files that are gone or changed; nobody may write the index meanwhile.

    Args:
        folder: Of a tantivy index, or an empty one.
    """
    if not (folder / "meta.json").exists():
        return []
    try:
        segments = json.loads((folder / "meta.json").read_bytes())["segments"]
        names = [
            f"{one['segment_id'].replace('-', '')}.{part}" for one in segments for part in _PARTS
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ["meta.json"]
    return [name for name in names if not _is_whole(folder / name)]


def _is_whole(path: Path) -> bool:
    """Whether a file's bytes have the checksum that stands at its end."""
    try:
        with path.open("rb") as file:
            file.seek(-_END.size, 2)
            length, mark = _END.unpack(file.read())
            file.seek(-_END.size - length, 2)
            left = file.tell()
            wanted = json.loads(file.read(length))["crc"]
            file.seek(0)
            found = 0
            while left:
                block = file.read(min(left, _BLOCK_BYTES))
                found = zlib.crc32(block, found)
                left -= len(block)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(mark == _MARK and found == wanted)
