"""Nothing but the one path writes events, and the calendar's own part of the house writes nothing at all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lastcall

ROOT = Path(lastcall.__file__).parent
WRITER = "events/services/write.py"
MODELS = {"Event", "EventWorld"}
SQL = re.compile(
    r"\b(?:insert\s+into|update|delete\s+from|merge\s+into|truncate|copy)\s+(?:only\s+)?(?:events|event_worlds)\b",
    re.IGNORECASE,
)
WRITERS = {"insert", "update", "delete", "upsert"}
NAMED = re.compile(rf"\b(?:{'|'.join(MODELS)})\b")


def writes(path: Path, text: str) -> Iterator[str]:
    """Every place in a file that writes the tables: in SQL, or by a statement on a model."""
    for found in SQL.finditer(text):
        yield f"{path}: {found[0]}"
    if path.suffix != ".py" or not NAMED.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            model = node.args[0]
            if name in WRITERS and isinstance(model, ast.Name) and model.id in MODELS:
                yield f"{path}: {name}({model.id})"


def sources() -> Iterator[tuple[Path, str]]:
    for path in sorted(ROOT.rglob("*")):
        if path.suffix in {".py", ".sql"} and "versions" not in path.parts:
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


@pytest.mark.clause("EVT-01")
def test_one_file_writes_events() -> None:
    found = {str(path) for path, text in sources() for _ in writes(path, text)}
    assert found == {WRITER}


@pytest.mark.parametrize(
    "text",
    [
        "tx.raw.execute('update events set title = 1')",
        "tx.execute(insert(Event).values(x))",
        "sql = 'INSERT  INTO event_worlds (id) select 1'",
        "tx.execute(sqlalchemy.delete(EventWorld))",
    ],
)
def test_another_writer_is_found(text: str) -> None:
    """The twin."""
    assert list(writes(Path("operations/somewhere.py"), text))
    assert not list(writes(Path("a.py"), "tx.execute(select(Event)); 'update operations set x = 1'"))


@pytest.mark.clause("EVT-02")
def test_what_reads_calendars_reaches_no_command() -> None:
    for path, text in sources():
        if path.parts[:2] == ("events", "imports"):
            imported = {
                node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)
            }
            assert not [one for one in imported if one.startswith("lastcall.events.services")], path
