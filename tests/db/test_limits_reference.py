"""docs/reference/limits.md names every limit of the house with its number and its window."""

from __future__ import annotations

import importlib
import pkgutil
from datetime import timedelta
from pathlib import Path

from lastcall.db.limits import Limit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "limits.md"
WORDS = {timedelta(minutes=1): "1 minute", timedelta(hours=1): "1 hour"}
ROOMS = (
    "db",
    "mail",
    "people",
    "clubs",
    "access",
    "decisions",
    "events",
    "connections",
    "operations",
    "reads",
    "api",
    "web",
)


def test_every_limit_is_in_the_reference() -> None:
    found: set[Limit] = set()
    for room in ROOMS:
        package = importlib.import_module(f"lastcall.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"lastcall.{room}."):
            if "migrations" not in module.name:
                found |= {
                    v for v in vars(importlib.import_module(module.name)).values() if isinstance(v, Limit)
                }
    page = PAGE.read_text(encoding="utf-8")
    assert len(found) > 5
    missing = [one for one in found if f"| `{one.name}` | {one.count} | {WORDS[one.per]} |" not in page]
    assert missing == [], f"add a row to {PAGE.name}"
    assert page.count("| `") == len(found), "a row stands for a limit that nobody has"
