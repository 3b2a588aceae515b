"""Reads as the collector makes them: the group first, then the kind under that evidence."""

from __future__ import annotations

from typing import Any

from lastcall.vrchat.evidence import read_own_member
from lastcall.vrchat.reads import Page, read_kind
from lastcall.vrchat.simulator import Simulator
from lastcall.vrchat.simulator.edits import edit
from lastcall.vrchat.transport import Transport


def change(simulator: Simulator, name: str, **arguments: str) -> None:
    """Somebody else's change in the seeded group."""
    edit(simulator.clock, simulator.world, simulator.seed.group_id, name, **arguments)


def place(simulator: Simulator) -> dict[str, str]:
    """The first open instance, as parameters."""
    instance = next(iter(simulator.world.instances.values()))
    return {"worldId": instance.world_id, "instanceId": instance.id}


def params_of(simulator: Simulator, name: str) -> dict[str, Any]:
    """Parameters of that kind for which a lively club has an answer."""
    seed = simulator.seed
    match name:
        case "search":
            return {"query": "Member", "n": 10}
        case "member":
            return {"targetUserId": seed.members[0]}
        case "eligibility":
            return {"targetUserIds": list(seed.members[:3]), **place(simulator)}
        case _:
            return {"n": 10}


async def ask(simulator: Simulator, transport: Transport, name: str, params: dict[str, Any]) -> Page:
    """Read the group, then the page."""
    kind = read_kind(name)
    known = kind.read_params(params)
    own = await read_own_member(transport, simulator.seed.group_id, simulator.seed.bot_id)
    return await kind.read(transport, own, known, lambda: None)
