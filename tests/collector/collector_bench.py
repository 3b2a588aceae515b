"""A collector in this process, with a scripted server on one side and the simulated VRChat on the other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from scripted_server import ScriptedServer

from lastcall.collector.config import AccountConfig, CollectorConfig
from lastcall.collector.main import serve
from lastcall.collector.state import fresh_id
from lastcall.protocol.steps import Step
from lastcall.testing.shared_clock import SharedTime
from lastcall.vrchat.session import Credentials
from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, Simulator
from lastcall.vrchat.simulator.edits import edit


async def nobody_to_ask(name: str, what: str) -> str:
    raise AssertionError(f"the collector asked for {what} of {name}")


@dataclass
class Bench:
    """Everything a test of the collector touches. ``steps`` are those of this run, in order."""

    server: ScriptedServer
    simulator: Simulator
    time: SharedTime
    folder: Path
    account_id: str = field(default_factory=fresh_id)
    steps: list[tuple[Step, str]] = field(default_factory=list)
    on_step: dict[Step, asyncio.Event] = field(default_factory=dict)
    reached: dict[Step, asyncio.Event] = field(default_factory=dict)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    running: asyncio.Task[int] | None = None

    async def observe(self, step: Step, operation_id: str) -> None:
        self.steps.append((step, operation_id))
        if step in self.on_step:
            self.reached[step].set()
            await self.on_step[step].wait()

    def hold(self, step: Step) -> None:
        """Stop every operation at this step until ``release``."""
        self.on_step[step] = asyncio.Event()
        self.reached[step] = asyncio.Event()

    async def at(self, step: Step) -> None:
        await asyncio.wait_for(self.reached[step].wait(), 15)

    def release(self, step: Step) -> None:
        self.on_step.pop(step).set()

    def config(self) -> CollectorConfig:
        credentials = Credentials(BOT_USERNAME, BOT_PASSWORD, BOT_TOTP_SECRET)
        return CollectorConfig(
            server_url=self.server.url,
            state_folder=self.folder,
            contact="ops@club.example",
            accounts=(AccountConfig(self.account_id, "key", credentials),),
            vrchat_url=self.simulator.url,
        )

    def start(self) -> None:
        self.stop = asyncio.Event()
        self.running = asyncio.create_task(
            serve(self.config(), nobody_to_ask, self.stop, clock=self.time.clock, observe=self.observe)
        )

    async def end(self) -> int:
        """Stop it as SIGTERM would; its exit code."""
        assert self.running is not None
        self.stop.set()
        for event in self.on_step.values():
            event.set()
        return await asyncio.wait_for(self.running, 30)

    async def advance(self, seconds: float) -> None:
        await self.time.advance(timedelta(seconds=seconds))

    def writes(self) -> int:
        return len(self.simulator.ledger.of())

    def role(self) -> dict[str, str]:
        """A payload of assign_role."""
        seed = self.simulator.seed
        return {"targetUserId": seed.members[0], "roleId": seed.role_ids[0]}

    def edit(self, name: str, **arguments: str) -> None:
        """Make a change in the simulated group."""
        group_id = self.simulator.seed.group_id
        edit(self.simulator.clock, self.simulator.world, group_id, name, **arguments)

    def reads(self, path: str) -> int:
        return sum(
            1 for arrival in self.simulator.arrivals if path in arrival.path and arrival.method == "GET"
        )
