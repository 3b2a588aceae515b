"""docs/reference/kinds.md, made from the kinds of operations."""

from __future__ import annotations

from typing import Any

import msgspec

from lastcall.operations.kinds import KINDS
from lastcall.operations.kinds.fields import SHAPES
from lastcall.operations.kinds.kind import Kind

INTRODUCTION = """\
# Kinds of actions

What can be queued, and what it takes. The fields stand beside `kind` in each of a request's `payloads`
([use the API](../how-to/use-the-api.md)); a field that is not named here is refused, `?` marks one that may be left
out. *At once* is how many one request may hold: several must be of one kind, and only invitations, decisions on
requests and role changes can be several. *Requests* are what one costs of the allowance, without the look at who the
account is. What is sent to VRChat, and what its answers mean, is told in [VRChat](../explanation/vrchat.md).
"""


def page() -> str:
    """The reference page."""
    lines = [
        INTRODUCTION,
        "| kind | fields | at once | permission | feature | grants in the group | requests |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(row(kind) for kind in KINDS.values()),
        "",
        "A single removal or ban, and a single closing, goes before everything else that waits.",
        "",
        "## Fields",
        "",
        "| field | what it must be |",
        "| --- | --- |",
        *(f"| `{name}` | {SHAPES[name]} |" for name in names()),
    ]
    return "\n".join(lines) + "\n"


def row(kind: Kind[Any]) -> str:
    fields = ", ".join(
        f"`{field.encode_name}`{'' if field.required else '?'}"
        for field in msgspec.structs.fields(kind.payload)
    )
    grants = [f"`{grant}`" for grant in kind.grants]
    if kind.more_grants is not None:
        grants.append("those of its options")
    cells = [
        f"`{kind.name}`, *{kind.words.label}*",
        fields,
        "1 to 100" if kind.is_bulk else "1",
        f"`{kind.permission}`",
        f"`{kind.feature}`",
        ", ".join(grants) or "none",
        str(kind.cost),
    ]
    return f"| {' | '.join(cells)} |"


def names() -> list[str]:
    """Every field of a kind, in the order in which the kinds have them."""
    found = [field.encode_name for kind in KINDS.values() for field in msgspec.structs.fields(kind.payload)]
    return list(dict.fromkeys(found))
