"""`python -m benchmarks.role (simulator|collector) [CLOCK]`: a process that a benchmark starts, and that ends with it.

The simulator has as many groups as clubs, each with one of the accounts in it, by the ids of ``world.py``. Without a
CLOCK the collector of the product itself is started instead of this one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import datetime
from pathlib import Path

from benchmarks.world import ACCOUNT, CLUB, GROUP_OWNER, OPERATION, ROLE, row_id
from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.demo.tied import end_with_starter
from lastcall.settings import load
from lastcall.testing.run import run
from lastcall.testing.shared_clock import SharedClock
from lastcall.vrchat.simulator import Simulator
from lastcall.vrchat.simulator.model import Group, Instance, Member, Place, Role, User, World
from lastcall.vrchat.simulator.seed import BOT_GRANTS

GROUPS, ACCOUNTS = "BENCHMARK_GROUPS", "BENCHMARK_ACCOUNTS"
"""Variables of the environment that say how many there are."""

PASSWORD = "not-a-secret-of-anyone"
ROLES = 12
INSTANCES = 2
PEOPLE = 20


def user_name(account: int) -> str:
    """The user name of the ``account``-th account."""
    return f"account-{account}"


def target(club: int, number: int) -> int:
    """The number of the ``number``-th operation of that club, and of the member whom it is about."""
    return (club * 1000 + number) * 100


def fill(world: World, now: datetime, groups: int, accounts: int) -> None:
    """Groups of a usual size, with places that are open and nobody in them, in place of what ``world`` holds."""
    world.groups.clear()
    world.instances.clear()
    world.users[GROUP_OWNER] = User(GROUP_OWNER, "Owner")
    for n in range(1, accounts + 1):
        bot = f"usr_{row_id(ACCOUNT, n)}"
        world.users[bot] = User(bot, f"Account {n}", user_name(n), PASSWORD)
    place = Place("wrld_00000000-0000-4000-8000-000000000001", "The Long Bar", GROUP_OWNER, now)
    world.places[place.id] = place
    for n in range(1, groups + 1):
        _add_group(world, now, n, f"usr_{row_id(ACCOUNT, 1 + (n - 1) % accounts)}", place.id)


def _add_group(world: World, now: datetime, number: int, bot: str, place_id: str) -> None:
    group = Group(f"grp_{row_id(CLUB, number)}", f"Group {number}", f"G{number}", GROUP_OWNER, now)
    for n in range(1, ROLES + 1):
        role_id = f"grol_00000000-0000-4000-8000-{n:012x}"
        group.roles[role_id] = Role(role_id, f"Role {n}", n, set(BOT_GRANTS))
    people = [f"usr_{row_id(OPERATION, target(number, n))}" for n in range(PEOPLE)]
    world.users |= {user_id: User(user_id, "Member") for user_id in people}
    for user_id in (GROUP_OWNER, bot, *people):
        group.members[user_id] = Member(f"gmem_{number}_{user_id}", user_id, now)
    group.members[bot].role_ids.append(ROLE)
    world.groups[group.id] = group
    for n in range(INSTANCES):
        instance_id = f"{n}~region(eu)~group({group.id})~groupAccessType(members)"
        instance = Instance(place_id, instance_id, group.id, "members", "eu")
        world.instances[instance.location] = instance


async def _simulate(clock: Clock) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    settings = load()
    simulator = Simulator(host=settings.simulator_host, port=settings.simulator_port, clock=clock, members=2)
    fill(simulator.world, clock.wall(), int(os.environ[GROUPS]), int(os.environ[ACCOUNTS]))
    async with simulator:
        print(simulator.url, flush=True)
        await stop.wait()


def main(role: str, clock: str | None = None) -> int:
    """Run it until SIGTERM."""
    end_with_starter()
    if role == "simulator":
        asyncio.run(_simulate(SYSTEM_CLOCK if clock is None else SharedClock(Path(clock))))
        return 0
    path = Path(clock or "")
    return run(role, path, path.parent)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
