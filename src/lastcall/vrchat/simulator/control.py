"""The pages under ``/__control/``: how another process arms faults, waits at barriers and reads the ledger.

They exist in the simulator only and need no credentials; it listens on loopback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lastcall.vrchat.simulator.edits import edit
from lastcall.vrchat.simulator.faults import Fault
from lastcall.vrchat.simulator.messages import Reply, Request, flat_refusal, json_reply

if TYPE_CHECKING:
    from lastcall.vrchat.simulator.server import Simulator

CONTROL = "/__control/"
LONGEST_WAIT = 60.0
"""Seconds that one question for a barrier is held open."""


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``name`` and ``arguments`` of a change in ``edits.py``; without a group it is made in the seeded
    one."""

    name: str
    arguments: dict[str, str]
    group: str | None = None


async def control(simulator: Simulator, request: Request) -> Reply:
    """Answer one control request; what is malformed or unknown gets 422 or 404 with a sentence."""
    what, _, rest = request.path.removeprefix(CONTROL).partition("/")
    try:
        match request.method, what:
            case "POST", "faults":
                simulator.arm(msgspec.json.decode(request.body, type=Fault))
            case "DELETE", "faults":
                simulator.faults.clear()
            case "GET", "ledger":
                return json_reply(simulator.ledger.entries)
            case "GET", "arrivals":
                return json_reply(simulator.arrivals)
            case "GET", "seed":
                return json_reply(simulator.seed)
            case "POST", "edits":
                change = msgspec.json.decode(request.body, type=Edit)
                group_id = change.group or simulator.seed.group_id
                edit(simulator.clock, simulator.world, group_id, change.name, **change.arguments)
            case "POST", "reset":
                simulator.reset()
            case (("GET" | "POST"), "barriers") if rest:
                return await _barrier(simulator, request, rest)
            case _:
                return flat_refusal(404, "The simulator has no such control.")
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        return flat_refusal(422, f"The simulator cannot do that: {error}")
    return json_reply({"done": True})


async def _barrier(simulator: Simulator, request: Request, name: str) -> Reply:
    """GET waits until a request stands at the barrier (``?wait=`` seconds), POST releases it."""
    if request.method == "POST":
        simulator.release(name)
        return json_reply({"done": True})
    try:
        await simulator.reached(name, float(request.number("wait", 0, int(LONGEST_WAIT))))
    except TimeoutError:
        return json_reply({"reached": False})
    return json_reply({"reached": True})
