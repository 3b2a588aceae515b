"""Each entry that the code can write into the audit has words for an operator."""

from __future__ import annotations

import ast
from pathlib import Path

import lastcall
from lastcall.web.audit_words import detail_words, words_for

SOURCES = Path(lastcall.__file__).parent
WRITERS = {"audit", "_audit"}


def actions() -> set[str]:
    """The texts with a dot in calls of what writes the audit, and those that such a call is given by name."""
    found: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            name.id
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in WRITERS
            for name in call.args
            if isinstance(name, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in WRITERS:
                found |= texts(*node.args)
            if isinstance(node, ast.Assign) and any(getattr(t, "id", "") in names for t in node.targets):
                found |= texts(node.value)
    return found


def texts(*nodes: ast.AST) -> set[str]:
    return {
        one.value
        for node in nodes
        for one in ast.walk(node)
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and "." in one.value
    }


def test_every_kind_of_entry_has_words() -> None:
    written = actions()
    assert {"person.blocked", "person.made_operator", "account.cooldown"} <= written
    assert [action for action in sorted(written) if words_for(action) == action] == []


def test_details_are_lines_of_words() -> None:
    lines = detail_words({"is_on": True, "scopes": ["read", "clubs"], "per_minute": 60})
    assert lines == ["is on: yes", "scopes: read, clubs", "per minute: 60"]
