"""The simulated VRChat as an HTTP server: it takes connections, applies requests and lets armed faults
happen."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Self

import h11

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.vrchat.simulator.control import CONTROL, control
from lastcall.vrchat.simulator.evening import enliven
from lastcall.vrchat.simulator.faults import Barrier, Fault, Faults
from lastcall.vrchat.simulator.ledger import Arrival, Ledger
from lastcall.vrchat.simulator.messages import Reply, Request, flat_refusal, json_reply, refusal
from lastcall.vrchat.simulator.model import World
from lastcall.vrchat.simulator.routes import respond
from lastcall.vrchat.simulator.seed import Seed, seed_club
from lastcall.vrchat.simulator.site import Site
from lastcall.vrchat.simulator.wire import Wire

BASE_PATH = "/api/1"

_NO_FAULT = Fault()
_DRIPPING_BODY = 4096
_PROXY_PAGE = (
    b"<!DOCTYPE html><html><head><title>Error</title></head><body><h1>Bad gateway</h1></body></html>"
)


class Simulator:
    """A VRChat with one seeded club; ``async with Simulator() as simulator`` serves it on a free loopback
    port.

    ``ledger`` holds the applied writes, ``arrivals`` every request that came in, ``connections`` how many
    were opened (those to the control pages not counted). ``requests_per_minute`` limits each account; 0 is
    no limit. ``is_lively``: people ask, are invited, banned and in instances, as on an evening; without it
    nothing goes on.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Clock = SYSTEM_CLOCK,
        members: int = 40,
        totp: bool = True,
        requests_per_minute: int = 0,
        ledger_file: Path | None = None,
        is_lively: bool = False,
    ) -> None:
        self._host, self.port = host, port
        self._members, self._totp, self._is_lively = members, totp, is_lively
        self.clock = clock
        self.faults = Faults()
        self.site = Site(World(), Ledger(ledger_file), clock, requests_per_minute)
        self.seed: Seed
        self.arrivals: list[Arrival] = []
        self.connections = 0
        self._numbers = count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.reset()

    # ------------------------------------------------------------------------------------------ for its users

    @property
    def url(self) -> str:
        """Where the API is, ready as a base address for a transport or an SDK."""
        return f"http://{self._host}:{self.port}{BASE_PATH}"

    @property
    def world(self) -> World:
        return self.site.world

    @property
    def ledger(self) -> Ledger:
        return self.site.ledger

    def reset(self) -> None:
        """A fresh club, no sessions, nothing armed. What was recorded stays."""
        self.faults.clear()
        self.site.world = World()
        self.seed = seed_club(self.world, self.clock.wall(), members=self._members, totp=self._totp)
        if self._is_lively:
            enliven(self.world, self.seed, self.clock.wall())

    def arm(self, fault: Fault, *, method: str = "*", path: str = "*", times: int = 1) -> Fault:
        """Let ``fault`` happen to the next ``times`` requests that match; ``path`` is a glob below the base
        path."""
        return self.faults.arm(fault, method=method, path=path, times=times)

    async def reached(self, barrier: str, timeout: float = 10.0) -> None:
        """Return once a request stands at the barrier; ``TimeoutError`` after ``timeout`` real seconds."""
        await asyncio.wait_for(self.faults.barrier(barrier).arrived.wait(), timeout)

    def release(self, barrier: str) -> None:
        """Let the request at the barrier go on."""
        self.faults.barrier(barrier).released.set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, self._host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and cut every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ----------------------------------------------------------------------------------------- a connection

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(Wire(reader, writer, BASE_PATH), next(self._numbers)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, wire: Wire, number: int) -> None:
        self.connections += 1
        # A peer that breaks the protocol or goes away is what this server is for.
        with suppress(ConnectionError, h11.ProtocolError):
            try:
                if not self.faults.take_refusal():
                    await self._converse(wire, number)
            finally:
                wire.close()

    async def _converse(self, wire: Wire, number: int) -> None:
        is_reused = False
        while (request := await wire.read_request()) is not None:
            if request.path.startswith(CONTROL):
                if not is_reused:
                    self.connections -= 1
                await wire.send(await control(self, request))
            elif not await self._answer(wire, request, number, is_reused=is_reused):
                return
            if not wire.next_cycle():
                return
            is_reused = True

    async def _answer(self, wire: Wire, request: Request, number: int, *, is_reused: bool) -> bool:
        """Handle one request; whether the connection goes on."""
        arrival = Arrival(
            number=len(self.arrivals) + 1,
            at=self.clock.wall(),
            connection=number,
            method=request.method,
            path=request.path,
            agent=request.headers.get("user-agent", ""),
        )
        self.arrivals.append(arrival)
        fault = self.faults.take(request.method, request.path, is_reused=is_reused) or _NO_FAULT
        barrier = self.faults.barrier(fault.hold) if fault.hold is not None else None
        if fault.delay:
            await self.clock.sleep(timedelta(seconds=fault.delay))
        if barrier is not None and fault.stage == "arrived":
            await barrier.wait()
        reply = respond(self.site, request) if fault.applies else refusal(503, "Not applied")
        if barrier is not None and fault.stage == "applied":
            await barrier.wait()
        if fault.reply in ("drop", "reset", "noise"):
            await _break_off(wire, fault)
            return False
        sent = _falsified(fault, reply)
        await self._send(wire, fault, sent, barrier)
        arrival.status = sent.status
        return True

    async def _send(self, wire: Wire, fault: Fault, reply: Reply, barrier: Barrier | None) -> None:
        if fault.reply == "drip":
            padded = Reply(reply.status, reply.body.ljust(_DRIPPING_BODY), reply.headers, reply.content_type)
            rest = await wire.send_half(padded)
            while len(rest) > 1:
                await self.clock.sleep(timedelta(seconds=fault.interval))
                rest = await wire.send_some(rest, 1)
            await wire.send_rest(rest)
        elif barrier is not None and fault.stage == "half_sent":
            rest = await wire.send_half(reply)
            await barrier.wait()
            await wire.send_rest(rest)
        else:
            await wire.send(reply)


async def _break_off(wire: Wire, fault: Fault) -> None:
    if fault.reply == "reset":
        wire.reset()
    elif fault.reply == "noise":
        await wire.send_noise()


def _falsified(fault: Fault, reply: Reply) -> Reply:
    """What is answered instead of ``reply`` under this fault."""
    wait = () if fault.retry_after is None else (("Retry-After", fault.retry_after),)
    match fault.reply:
        case "garbage":
            return Reply(200, b"\x00\x1f<<upstream>>", content_type="application/json")
        case "proxy_page":
            return Reply(fault.status, _PROXY_PAGE, wait, content_type="text/html")
        case "said":
            return Reply(fault.status, fault.body.encode(), wait)
        case "redirect":
            return Reply(fault.status, b"", (("Location", fault.location or "/"),), content_type="text/html")
        case "status" if fault.status in (429, 503):
            return flat_refusal(fault.status, "Please slow down\u01c3", wait)
        case "status":
            return json_reply(
                {"error": {"message": '"Refused by a fault"', "status_code": fault.status}},
                fault.status,
                wait,
            )
        case _:
            return reply


async def run(
    *,
    host: str,
    port: int,
    members: int,
    requests_per_minute: int,
    ledger_file: Path | None,
    ready: Callable[[Simulator], None],
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Serve a lively club until SIGINT or SIGTERM; ``ready`` is called once connections are taken.

    Raises ``OSError`` for a port in use.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    simulator = Simulator(
        host=host,
        port=port,
        clock=clock,
        members=members,
        requests_per_minute=requests_per_minute,
        ledger_file=ledger_file,
        is_lively=True,
    )
    async with simulator:
        ready(simulator)
        await stop.wait()
