"""What a collector reports of the group of a site, and how its connection stands."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.connections.conftest import Site

from lastcall.connections.leases import release_lease
from lastcall.connections.membership import report_membership
from lastcall.connections.states import ConnectionState
from lastcall.connections.worker import LeaseHeld
from lastcall.protocol.membership import GroupSeen
from lastcall.protocol.messages import OwnMemberEvidence

S = ConnectionState


def group(membership: str = "member", join_state: str = "open", **changes: Any) -> GroupSeen:
    facts = {"group_id": "grp_1", "name": "Night Shift", "privacy": "default", **changes}
    return GroupSeen(join_state=join_state, membership=membership, **facts)


def evidence(*grants: str, **changes: Any) -> OwnMemberEvidence:
    facts: dict[str, Any] = {
        "age_ms": 0,
        "group_id": "grp_1",
        "owner_id": "usr_owner",
        "user_id": "usr_1",
        "member_status": "member",
        "permissions": grants,
        "role_ids": (),
        "roles": (),
        "privacy": "default",
        **changes,
    }
    return OwnMemberEvidence(**facts)


async def look(
    site: Site, held: LeaseHeld, membership: str = "member", join_state: str = "open", **changes: Any
) -> ConnectionState:
    """Report what a look saw; a member with every grant."""
    seen = evidence("*") if membership == "member" else None
    return await report_membership(site.db, site.worker, held, group(membership, join_state, **changes), seen)


async def looked(site: Site, membership: str = "member", join_state: str = "open") -> ConnectionState:
    """One pass that only looks."""
    held = await site.lease()
    state = await look(site, held, membership, join_state)
    await release_lease(site.db, site.worker, held)
    return state


async def row(site: Site) -> Any:
    return await site.db.pool.fetchrow("select * from connections where id = $1", site.connection_id)


async def put(site: Site, state: ConnectionState, **values: Any) -> None:
    """Bring the connection into a state that no test is about getting to."""
    await site.set("connections", state=state.value, **values)


async def next_look(site: Site) -> timedelta | None:
    """How long until the next look; None for none."""
    in_: timedelta | None = await site.db.pool.fetchval(
        "select next_look_at - lastcall_now() from connections where id = $1", site.connection_id
    )
    return in_
