"""Each entry that the code can write into a club's log has words for its readers, and a family to look for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import lastcall
from lastcall.access.requests import RequestStatus
from lastcall.clubs.activity_log import STAFF_FAMILIES
from lastcall.clubs.listeners import ClubChange
from lastcall.web.activity_words import FAMILIES, activity_words

SOURCES = Path(lastcall.__file__).parent
AUDIT = {"audit", "_audit"}
ACTION = re.compile(r"[a-z]+\.[a-z_]+")


def actions() -> set[str]:
    """The texts that look like an action in files that write the log, and those that are put together there."""
    found: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        if any(
            isinstance(node, ast.ImportFrom)
            and node.module == "lastcall.clubs.activity"
            and "log" in {name.name for name in node.names}
            for node in nodes
        ):
            of_the_audit = {
                inner
                for node in nodes
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in AUDIT
                for inner in ast.walk(node)
            }
            # The field that a refusal names is no action, though it looks like one.
            fields = {node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "field"}
            texts = {
                node.value
                for node in nodes
                if isinstance(node, ast.Constant) and node not in of_the_audit | fields
            }
            found |= {text for text in texts if isinstance(text, str) and ACTION.fullmatch(text)}
    for path in SOURCES.rglob("*.sql"):
        text = path.read_text(encoding="utf-8")
        if "insert into activity_log" in text:
            found |= {quoted for quoted in re.findall(r"'([^']*)'", text) if ACTION.fullmatch(quoted)}
    changes = set(ClubChange) - {ClubChange.RETENTION, ClubChange.DELETED}
    found |= {f"club.{change}" for change in changes}
    found |= {f"join.{status}" for status in set(RequestStatus) - {RequestStatus.PENDING}}
    return found - {"clubs.owner_id"}


def test_every_kind_of_entry_has_words() -> None:
    written = actions()
    assert {"join.activity", "retention.kept", "retention.archived", "staff.person_erased"} <= written
    assert [action for action in sorted(written) if activity_words(action) == action] == []


def test_every_kind_of_entry_can_be_looked_for() -> None:
    assert {action.partition(".")[0] for action in actions()} == set(FAMILIES)
    assert set(STAFF_FAMILIES) < set(FAMILIES)
