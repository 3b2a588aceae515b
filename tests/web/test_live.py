"""The event stream: says that something changed, never what; ends with the session and with the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import httpx2
import pytest
from tests.web.conftest import Site, Visitor, World

from lastcall.db.bus import Hint, PostCommitBus
from lastcall.db.ids import new_id
from lastcall.deadlines.signals import Missed
from lastcall.people.sessions import end_session
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import eventually
from lastcall.web.live import EVERYTHING, LiveHub

PATH = "/c/night-shift/live/scheduled"


async def yes() -> bool:
    return True


async def until(stream: AsyncIterator[str], text: str) -> str:
    async with asyncio.timeout(10):
        async for part in stream:
            if text in part:
                return part
    raise AssertionError(f"the stream ended before it said {text}")


async def test_a_change_between_the_page_and_its_stream_is_not_lost() -> None:
    bus = PostCommitBus()
    hub, club = LiveHub(bus), new_id()
    seen = hub.mark((club, "scheduled"))
    bus.deliver([Hint(club, "scheduled")])
    assert "event: changed" in await until(hub.stream([(club, "scheduled")], seen, yes), "changed")


async def test_the_counter_of_another_process_counts_as_a_change() -> None:
    """After a restart nobody knows what was missed, so the page asks again."""
    club = new_id()
    seen = LiveHub(PostCommitBus()).mark((club, "scheduled"))
    hub = LiveHub(PostCommitBus())
    assert "event: changed" in await until(hub.stream([(club, "scheduled")], seen, yes), "changed")


async def test_a_burst_of_changes_is_told_once_and_other_topics_not_at_all() -> None:
    bus = PostCommitBus()
    hub, club = LiveHub(bus), new_id()
    channel = (club, "scheduled")
    stream = hub.stream([channel], hub.mark(channel), yes)
    assert await anext(stream) == "retry: 1000\n\n"
    first = asyncio.ensure_future(until(stream, "changed"))
    await eventually(lambda: hub.open_streams == 1)
    bus.deliver([Hint(new_id(), "scheduled"), Hint(club, "connection")])
    bus.deliver([Hint(club, "scheduled")] * 100)
    assert hub.mark(channel) in await first
    assert hub.mark(EVERYTHING).endswith("-102")


async def test_hints_that_may_be_lost_count_as_a_change() -> None:
    bus = PostCommitBus()
    hub, club = LiveHub(bus), new_id()
    seen = hub.mark((club, "scheduled"))
    bus.deliver([Missed()])
    assert "event: changed" in await until(hub.stream([(club, "scheduled")], seen, yes), "changed")


async def test_closing_the_hub_ends_every_stream() -> None:
    hub, club = LiveHub(PostCommitBus()), new_id()
    channel = (club, "scheduled")

    async def drain() -> None:
        async for _ in hub.stream([channel], hub.mark(channel), yes):
            pass

    reading = asyncio.ensure_future(drain())
    await eventually(lambda: hub.open_streams == 1)
    hub.close()
    async with asyncio.timeout(5):
        await reading
    assert hub.open_streams == 0


async def test_a_queued_action_reaches_an_open_page(
    world: World, site: Site, visit: Callable[..., Visitor]
) -> None:
    client = visit("owner").client
    async with client.stream("GET", PATH, params={"seen": "none"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.aiter_lines()
        assert await line_with(lines, "data: ")
        await world.queue("ban_member", [1])
        assert await line_with(lines, "data: ")


async def test_each_topic_is_told_to_whoever_may_open_its_pages(
    world: World, site: Site, visit: Callable[..., Visitor]
) -> None:
    got: dict[tuple[str, str], int] = {}
    for who in ("staff", "owner"):
        for topic in ("scheduled", "reads", "connection", "nothing"):
            async with visit(who).client.stream("GET", f"/c/night-shift/live/{topic}") as answer:
                got[who, topic] = answer.status_code
    assert list(got.values()) == [200, 200, 403, 404, 200, 200, 200, 404]


async def test_an_open_page_costs_no_statement(
    world: World, site: Site, visit: Callable[..., Visitor]
) -> None:
    client = visit("owner").client
    async with client.stream("GET", PATH, params={"seen": "none"}) as answer:
        assert await line_with(answer.aiter_lines(), "data: ")
        async with assert_quiet(world.db, 3):
            pass


async def test_the_stream_ends_with_its_session(
    world: World, site: Site, visit: Callable[..., Visitor]
) -> None:
    client = visit("owner").client
    async with client.stream("GET", PATH, params={"seen": "none"}) as answer:
        lines = answer.aiter_lines()
        assert await line_with(lines, "data: ")
        await end_session(world.db, world.sessions["owner"])
        async with asyncio.timeout(10):
            assert [line async for line in lines if line.startswith("data: ")] == []
    assert (await client.get(PATH)).status_code == 401


async def test_stopping_the_server_ends_open_streams_at_once(
    world: World, site: Site, visit: Callable[..., Visitor]
) -> None:
    client = visit("owner").client
    async with client.stream("GET", PATH, params={"seen": "none"}) as answer:
        lines = answer.aiter_lines()
        assert await line_with(lines, "data: ")
        async with asyncio.timeout(10):
            await site.stop()
            with pytest.raises((StopAsyncIteration, httpx2.TransportError)):
                while True:
                    await anext(lines)


async def line_with(lines: AsyncIterator[str], start: str) -> str:
    async with asyncio.timeout(10):
        async for line in lines:
            if line.startswith(start):
                return line
    raise AssertionError(f"the stream ended before a line with {start}")
