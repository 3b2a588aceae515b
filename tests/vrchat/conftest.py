"""A simulated VRChat and a signed-in account for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from lastcall.clock import SYSTEM_CLOCK
from lastcall.vrchat.cookies import Cookies
from lastcall.vrchat.session import Credentials, Session
from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, Simulator
from lastcall.vrchat.transport import Transport, user_agent_for

SHORT = timedelta(seconds=1)
"""The total time in these tests: long for a loopback, short for whoever waits for it to run out."""


async def no_code(method: str) -> str:
    raise AssertionError(f"nobody should be asked for a {method} code")


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator(members=8) as running:
        yield running


@pytest.fixture
async def transport(simulator: Simulator) -> AsyncIterator[Transport]:
    """Signed in; the arrivals of the sign-in are already behind."""
    opened = Transport(simulator.url, user_agent_for("ops@example.org"), Cookies(), SYSTEM_CLOCK, total=SHORT)
    credentials = Credentials(BOT_USERNAME, BOT_PASSWORD, BOT_TOTP_SECRET)
    await Session(opened, simulator.seed.bot_id).sign_in(credentials, no_code)
    simulator.arrivals.clear()
    simulator.connections = 0
    yield opened
    await opened.close()
