"""The table in docs/reference/reads.md, made from the kinds of reads as server and collector know them."""

from __future__ import annotations

from typing import Any

import msgspec

from lastcall.reads.kinds import KINDS
from lastcall.vrchat.reads import READS, ReadKind
from lastcall.vrchat.reads.kind import PageParams

PATHS = {
    "members": "`GET /groups/{group}/members`",
    "search": "`GET /groups/{group}/members/search`",
    "member": "`GET /groups/{group}/members/{user}`",
    "requests": "`GET /groups/{group}/requests`",
    "invites": "`GET /groups/{group}/invites`",
    "bans": "`GET /groups/{group}/bans`",
    "roles": "none, the roles come with the group",
    "instance_roles": "none, as above",
    "instances": "`GET /groups/{group}/instances`",
    "eligibility": "`GET /auth/user`, and with a place `GET /instances/{world}:{instance}`",
    "posts": "`GET /groups/{group}/posts`",
}
"""Shown beside each kind; the simulator's arrivals in the tests of a kind are these."""

HEAD = "| kind | parameters | request | permission | feature | grants | requests | items |"


def page(written: str) -> str:
    """The page as ``written``, with the table of the kinds as the code has it."""
    before, head, after = written.partition(HEAD)
    if not head:
        raise ValueError(f"the page has no table {HEAD}")
    rest = after.partition("\n\n")[2]
    lines = [HEAD, "|" + " --- |" * 8, *(row(kind) for kind in READS.values())]
    return before + "\n".join(lines) + "\n\n" + rest


def row(kind: ReadKind) -> str:
    asked = KINDS[kind.name]
    params = ", ".join(
        f"`{field.encode_name}`{'' if field.required else '?'}"
        for field in msgspec.structs.fields(kind.params)
    )
    cells = [
        f"`{kind.name}`, *{asked.label}*",
        params,
        PATHS[kind.name],
        f"`{asked.permission}`",
        f"`{asked.feature}`",
        ", ".join(f"`{grant}`" for grant in kind.grants) or "none",
        requests(kind),
        ", ".join(f"`{field.encode_name}`" for field in msgspec.structs.fields(kind.item)),
    ]
    return f"| {' | '.join(cells)} |"


def requests(kind: ReadKind) -> str:
    if issubclass(kind.params, PageParams) or kind.name == "member":
        return str(1 + kind.requests(None))
    users: dict[str, Any] = {"targetUserIds": ["usr_00000000-0000-4000-8000-000000000001"]}
    place = {
        "worldId": "wrld_00000000-0000-4000-8000-000000000001",
        "instanceId": "1~group(grp_00000000-0000-4000-8000-000000000001)",
    }
    without, with_place = (kind.cost(kind.read_params(users | more)) for more in ({}, place))
    return f"{without}, with a place {with_place}"
