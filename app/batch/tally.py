"""Which rows are finished, in one byte a row."""

from typing import Literal

Status = Literal["ok", "error"]
_CODES: dict[Status, int] = {"ok": 1, "error": 2}
_NAMES: dict[int, Status] = {code: status for status, code in _CODES.items()}


class Tally:
    """The status of rows by their number: ten million of them take ten megabytes."""

    def __init__(self) -> None:
        self._codes = bytearray()
        self._counts = dict.fromkeys(_NAMES, 0)

    def __len__(self) -> int:
        """How many rows are finished."""
        return sum(self._counts.values())

    def __contains__(self, number: int) -> bool:
        """Whether a row is finished."""
        return number < len(self._codes) and self._codes[number] > 0

    def __getitem__(self, number: int) -> Status:
        """The status of a finished row."""
        if number not in self:
            raise KeyError(number)
        return _NAMES[self._codes[number]]

    def put(self, number: int, status: Status) -> None:
        """Notes that a row is finished; a later word on it counts."""
        if number >= len(self._codes):
            self._codes.extend(bytes(max(number + 1 - len(self._codes), len(self._codes), 64)))
        before = self._codes[number]
        if before:
            self._counts[before] -= 1
        self._codes[number] = _CODES[status]
        self._counts[_CODES[status]] += 1

    def count(self, status: Status) -> int:
        """How many rows have a status."""
        return self._counts[_CODES[status]]
