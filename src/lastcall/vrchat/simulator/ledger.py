"""The judge of every at-most-once test: what arrived, and what was applied."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import msgspec


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """One applied write. ``changed`` is false where VRChat accepted it though nothing was left to do."""

    number: int
    at: datetime
    method: str
    path: str
    action: str
    actor: str
    group: str
    target: str
    changed: bool
    request_id: str | None = None


class Arrival(msgspec.Struct, rename="camel"):
    """One request that reached the simulator, whatever became of it. ``status`` is null while it has no
    answer; ``agent`` is its User-Agent."""

    number: int
    at: datetime
    connection: int
    method: str
    path: str
    agent: str = ""
    status: int | None = None


class Ledger:
    """Append-only. With ``path`` each entry is also one JSON line there, for other processes to read."""

    def __init__(self, path: Path | None = None) -> None:
        self.entries: list[Entry] = []
        self._path = path
        self._first = len(read_ledger(path)) + 1 if path is not None and path.exists() else 1

    def record(
        self,
        at: datetime,
        method: str,
        path: str,
        *,
        action: str,
        actor: str,
        group: str,
        target: str,
        changed: bool,
        request_id: str | None,
    ) -> Entry:
        """Append; the line is in the file before the effect is answered."""
        number = self._first + len(self.entries)
        entry = Entry(number, at, method, path, action, actor, group, target, changed, request_id)
        self.entries.append(entry)
        if self._path is not None:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(descriptor, msgspec.json.encode(entry) + b"\n")
            finally:
                os.close(descriptor)
        return entry

    def of(self, action: str | None = None, target: str | None = None) -> list[Entry]:
        """The entries with this action and target; either may be left open."""
        return [
            entry
            for entry in self.entries
            if action in (None, entry.action) and target in (None, entry.target)
        ]


def read_ledger(path: Path) -> list[Entry]:
    """The entries in a ledger file, in order."""
    return [msgspec.json.decode(line, type=Entry) for line in path.read_bytes().splitlines()]
