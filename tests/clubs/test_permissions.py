"""The table of permissions is complete, and the docs show it as it is."""

from __future__ import annotations

from pathlib import Path

from lastcall.clubs.permissions import LABELS, PRESETS, Permission

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "permissions.md"


def describe() -> list[str]:
    """The table of docs/reference/permissions.md, a line a permission."""
    lines = []
    for permission in Permission:
        names = ", ".join(preset.name for preset in PRESETS if permission in preset.permissions)
        lines.append(f"| `{permission}` | {permission.label} | {names} |")
    return lines


def test_every_permission_has_a_label_of_its_own() -> None:
    assert set(LABELS) == set(Permission)
    assert len(set(LABELS.values())) == len(Permission)


def test_the_docs_list_every_permission_as_it_is() -> None:
    listed = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert listed == describe()


def test_presets_hold_only_what_they_are_named_for() -> None:
    by_key = {preset.key: preset.permissions for preset in PRESETS}
    assert by_key["admin"] == set(Permission)
    assert Permission.MANAGE_STAFF not in by_key["moderator"] | by_key["event_staff"]
