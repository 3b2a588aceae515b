"""docs/how-to/set-up-mail.md lists every kind of mail that the house writes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from lastcall.decisions.deliveries.words import KINDS
from lastcall.spending.words import KINDS as BUDGETS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "set-up-mail.md"


def kinds() -> Iterator[str]:
    """The literal first argument of every ``Mail`` and ``Notice``, by name or by place."""
    for file in (ROOT / "src" / "lastcall").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("Mail", "Notice")
            ):
                # The API has a shape of that name, for notices about actions; it has no kind.
                first = [word.value for word in node.keywords if word.arg == "kind"] or node.args[:1]
                for value in first:
                    if isinstance(value, ast.Constant):
                        yield str(value.value)


def test_every_kind_of_mail_is_in_the_docs() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## What is written to whom")[2].partition("## ")[0]
    listed = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert sorted(listed) == sorted([*kinds(), *(kind.name.replace(".", "_") for kind in (*KINDS, *BUDGETS))])
    assert len(listed) > 8
