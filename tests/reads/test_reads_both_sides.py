"""What the collector's side reads from VRChat is, for every kind, what the server keeps and hands out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest
from tests.reads.reads_world import Reading
from tests.vrchat.reading import ask, params_of

from lastcall.clock import SYSTEM_CLOCK
from lastcall.reads.kinds import KINDS
from lastcall.vrchat.cookies import Cookies
from lastcall.vrchat.session import Credentials, Session
from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, Simulator
from lastcall.vrchat.transport import Transport, user_agent_for


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator(members=40, is_lively=True) as running:
        yield running


@pytest.fixture
async def transport(simulator: Simulator) -> AsyncIterator[Transport]:
    opened = Transport(
        simulator.url,
        user_agent_for("ops@example.org"),
        Cookies(),
        SYSTEM_CLOCK,
        total=timedelta(seconds=5),
    )
    await Session(opened, simulator.seed.bot_id).sign_in(
        Credentials(BOT_USERNAME, BOT_PASSWORD, BOT_TOTP_SECRET), no_code
    )
    yield opened
    await opened.close()


async def no_code(method: str) -> str:
    raise AssertionError(f"nobody should be asked for a {method} code")


@pytest.mark.parametrize("name", KINDS)
async def test_a_page_of_every_kind_comes_through(
    reading: Reading, simulator: Simulator, transport: Transport, name: str
) -> None:
    params = params_of(simulator, name)
    held = await reading.claimed(name, params)
    sent = await reading.run("select params::text from provider_reads where id = $1", held.read_id)
    page = await ask(simulator, transport, name, msgspec.json.decode(sent))
    rows = msgspec.json.decode(msgspec.json.encode(page.rows))
    assert rows, "a lively club has some of everything"
    assert await reading.complete(held, *rows, next_offset=page.next_offset, total=page.total)
    read = await reading.look(held.read_id)
    assert read.is_fresh
    assert (read.next_offset, read.total) == (page.next_offset, page.total)
    assert [msgspec.convert(msgspec.to_builtins(one), type(page.items[0])) for one in read.items] == list(
        page.items
    )
