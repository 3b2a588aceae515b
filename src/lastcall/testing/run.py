"""The real entry points on a test's clock and with its barriers.

``python -m lastcall.testing.run (server|collector|simulator) CLOCK BARRIERS``, with the settings of the product in
the environment. Only tests start it; the product's own commands reach neither clock nor barriers.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from lastcall.errors import LastcallError
from lastcall.settings import load
from lastcall.testing.shared_clock import SharedClock

# Each role imports what it needs, and no more.


async def _server(clock: SharedClock, barriers: Path) -> int:
    from lastcall.cli.server import serve
    from lastcall.testing.barriers import stop_around_hot_steps

    stop_around_hot_steps(barriers)
    await serve(load(), clock=clock)
    return 0


async def _collector(clock: SharedClock, barriers: Path) -> int:
    from lastcall.collector.config import config_from
    from lastcall.collector.main import run_collector
    from lastcall.testing.barriers import observer
    from lastcall.testing.departures import record_departures

    record_departures(barriers, clock)

    async def nobody(name: str, what: str) -> str:
        raise AssertionError(f"there is nobody to ask for {what} of {name}")

    return await run_collector(config_from(load()), nobody, clock=clock, observe=observer(barriers))


async def _simulator(clock: SharedClock, barriers: Path) -> int:
    from lastcall.vrchat import simulator as vrchat

    settings = load()

    def ready(simulator: vrchat.Simulator) -> None:
        (barriers / "simulator.url").write_text(simulator.url)

    await vrchat.run(
        host=settings.simulator_host,
        port=settings.simulator_port,
        members=40,
        requests_per_minute=0,
        ledger_file=barriers / "ledger",
        ready=ready,
        clock=clock,
    )
    return 0


ROLES = {"server": _server, "collector": _collector, "simulator": _simulator}


def run(role: str, clock: Path, barriers: Path) -> int:
    """Run ``role`` to its end; its exit status."""
    try:
        return asyncio.run(ROLES[role](SharedClock(clock), barriers))
    except LastcallError as error:
        sys.stderr.write(f"{error.sentence} {error.advice}\n")
        return 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
