"""One pass in which everything happens, and what can be done to each of its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from tests.hostile.stage import Place, Seen, Stage

from lastcall.vrchat.simulator import faults

STEPS = {
    "group": ("GET", "/groups/{group}"),
    "place": ("GET", "/instances/{location}"),
    "friendship": ("GET", "/user/{target}/friendStatus"),
    "write": ("POST", "/invite/{target}"),
    "read": ("GET", "/groups/{group}/members"),
    "aggregates": ("GET", "/groups/{group}/instances"),
    "audit": ("GET", "/groups/{group}/auditLogs"),
}
"""The requests of a pass that invites a friend into an instance, gives a role, reads the members and looks at the
aggregates, in their order; the role's are left out."""

PREFLIGHT = ("group", "place", "friendship")
WRITES = {
    "invite_to_instance": STEPS["write"],
    "close_instance": ("DELETE", "/instances/{location}"),
    "create_instance": ("POST", "/instances"),
    "ban_member": ("POST", "/groups/{group}/bans"),
}
"""The write of each kind of operation that is made to meet something."""

AUDIT_DELAY = 370.0
"""Seconds: so old has a connection to be before there is a page of its audit log to read."""


@dataclass
class Scene:
    """A club whose first pass is about to begin. ``target`` is the person whom the operation is about, if any."""

    place: Place
    kind: str = "invite_to_instance"
    where: dict[str, str] = field(init=False)
    target: str = field(init=False)
    operation: UUID = field(init=False)
    behind: UUID = field(init=False)
    read: UUID = field(init=False)

    @property
    def location(self) -> str:
        return f"{self.where['worldId']}:{self.where['instanceId']}"

    async def queue(self) -> None:
        """Everything that the pass has to do."""
        place, seed = self.place, self.place.seed
        self.where = place.open_instance()
        self.target = seed.friends[0]
        person = {"targetUserId": self.target}
        payload = {
            "invite_to_instance": self.where | person,
            "close_instance": self.where,
            "create_instance": {"worldId": seed.world_ids[0], "access": "public", "region": "eu"},
            "ban_member": person,
        }[self.kind]
        (self.operation,) = await place.enqueue({"kind": self.kind, **payload})
        role = {"kind": "assign_role", "targetUserId": seed.members[1], "roleId": seed.role_ids[0]}
        (self.behind,) = await place.enqueue(role)
        self.read = await place.ask_read("members", n=25)

    def request(self, step: str) -> tuple[str, str]:
        """Method and path, as a pattern that fits only this club's."""
        method, path = WRITES[self.kind] if step == "write" else STEPS[step]
        return method, path.format(
            group=self.place.seed.group_id, location=f"{self.location}*", target=self.target
        )

    def arm(self, fault: faults.Fault, step: str, times: int = 1) -> None:
        method, path = self.request(step)
        self.place.arm(fault, method=method, path=path, times=times)

    async def change_at(self, step: str, change: Callable[[Scene], None]) -> None:
        """Start, and make the change as the request of this step arrives."""
        name = f"{self.place.number}"
        self.arm(faults.hold(name, "arrived"), step)
        self.place.start()
        await self.place.stage.simulator.reached(name, 20)
        change(self)
        self.place.stage.simulator.release(name)

    async def seen(self) -> Seen:
        return await self.place.seen(self.operation, self.behind, self.read)


async def scenes_of(stage: Stage, kinds: Mapping[str, str]) -> dict[str, Scene]:
    """A scene of each name with an operation of its kind, at a moment at which its pass meets all steps."""
    scenes = {name: Scene(await stage.place(), kind) for name, kind in kinds.items()}
    await stage.advance(AUDIT_DELAY)
    await stage.granting()
    await asyncio.gather(*(scene.queue() for scene in scenes.values()))
    return scenes


async def expect_all(scenes: Mapping[str, Scene], expected: Mapping[str, Seen]) -> None:
    """What is seen of each scene becomes what is expected of it."""
    last: dict[str, Seen] = {}

    async def is_so() -> bool:
        last.update({name: await scene.seen() for name, scene in scenes.items()})
        return last == expected

    (stage,) = {id(scene.place.stage): scene.place.stage for scene in scenes.values()}.values()
    try:
        await stage.eventually(is_so)
    except AssertionError as error:
        differing = [
            f"{name}:\n  {last[name]}\n  expected\n  {seen}"
            for name, seen in expected.items()
            if last[name] != seen
        ]
        raise AssertionError("\n".join(differing)) from error
