"""A connection to the server serves one call after the other; nothing of one call is ever taken for another's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec
import pytest

from lastcall import wire
from lastcall.collector import server as calls
from lastcall.collector.server import Server, Unreachable
from lastcall.protocol import messages as m
from lastcall.protocol.outcomes import Outcome
from lastcall.testing.waiting import eventually
from lastcall.wire import AnswerTooLong, WireFault, Wires

EPOCH = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LEASE = m.LeaseRef(club_id="a", connection_id="b", epoch=EPOCH, fencing_token=1)
CLAIM = m.ClaimRef(club_id="a", connection_id="b", epoch=EPOCH, fencing_token=1, operation_id="c", nonce="d")


def said(body: bytes, *headers: str) -> bytes:
    lines = ("HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


DONE = said(msgspec.json.encode(m.Done()))


@dataclass
class Heard:
    """A server that answers by a script: for each connection, what it does with one request after the other."""

    url: str = ""
    requests: list[tuple[int, str]] = field(default_factory=list)
    """The connection's number and the call's name."""
    ended: list[int] = field(default_factory=list)
    """Connections that the client closed."""


Act = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answer(content: bytes = DONE) -> Act:
    async def act(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(content)
        await writer.drain()

    return act


async def reset(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def answer_and_close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(DONE)
    writer.close()


@asynccontextmanager
async def serving(*script: Sequence[Act]) -> AsyncIterator[Heard]:
    """Each connection follows its line of ``script``, then answers every request."""
    heard = Heard()
    tasks: set[asyncio.Task[None]] = set()
    count = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        acts = list(script[number]) if number < len(script) else []
        with contextlib.suppress(ConnectionError):
            try:
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode()
                    length = int(head.lower().split("content-length:")[1].split()[0])
                    await reader.readexactly(length)
                    heard.requests.append((number, head.split()[1].rpartition("/")[2]))
                    await (acts.pop(0) if acts else answer())(reader, writer)
            except asyncio.IncompleteReadError:
                heard.ended.append(number)
            finally:
                writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        task = asyncio.create_task(serve(reader, writer, count))
        count += 1
        tasks.add(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    heard.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield heard
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def asking(heard: Heard) -> AsyncIterator[Server]:
    server = Server(heard.url, "key", "account")
    try:
        yield server
    finally:
        await server.close()


def release() -> m.Release:
    return m.Release(worker_id="w", vrchat_user_id="usr_1", lease=LEASE)


def complete() -> m.Complete:
    return m.Complete(
        worker_id="w", vrchat_user_id="usr_1", claim=CLAIM, outcome=Outcome.SUCCEEDED, code=None, result={}
    )


def authorize() -> m.Authorize:
    evidence = m.OwnMemberEvidence(
        age_ms=0,
        group_id="grp_1",
        owner_id="usr_2",
        user_id="usr_1",
        member_status="member",
        permissions=(),
        role_ids=(),
        roles=(),
        privacy="default",
    )
    return m.Authorize(
        worker_id="w", vrchat_user_id="usr_1", claim=CLAIM, kind="ban_member", evidence=evidence
    )


AUTHORIZED = said(msgspec.json.encode(m.AuthorizeAnswer(is_authorized=True, state="submitted")))
RECORDED = said(msgspec.json.encode(m.Recorded(is_recorded=True, state="succeeded")))


async def test_one_call_after_the_other_goes_out_on_the_same_connection() -> None:
    async with serving() as heard, asking(heard) as server:
        for _ in range(3):
            await server.call(release(), m.Done)
        await asyncio.gather(*(server.call(release(), m.Done) for _ in range(2)))
    numbers = [number for number, _name in heard.requests]
    assert numbers[:3] == [0, 0, 0]
    assert sorted(numbers[3:]) == [0, 1], "two at a time are never on one"


@pytest.mark.clause("WRK-14")
async def test_what_an_operation_ends_by_never_goes_out_on_a_connection_that_another_call_used() -> None:
    script = ([answer(), reset], [answer(AUTHORIZED), reset], [answer(RECORDED), reset])
    async with serving(*script) as heard, asking(heard) as server:
        await server.call(release(), m.Done)
        assert (await server.call(authorize(), m.AuthorizeAnswer)).is_authorized
        assert (await server.call(complete(), m.Recorded)).is_recorded
    assert heard.requests == [(0, "release"), (1, "authorize"), (2, "complete")]


@pytest.mark.clause("WRK-14")
async def test_twin_on_a_kept_connection_that_is_lost_under_it_the_outcome_has_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard is the list of the calls that go out alone; an empty one stands in its place."""
    monkeypatch.setattr(calls, "ALONE", frozenset())
    script = ([answer(), reset], [answer(RECORDED)])
    async with serving(*script) as heard, asking(heard) as server:
        await server.call(release(), m.Done)
        with pytest.raises(Unreachable):
            await server.call(complete(), m.Recorded)
    assert heard.requests == [(0, "release"), (0, "complete")]


async def test_a_server_that_closes_what_is_idle_costs_no_call() -> None:
    async with serving([answer_and_close], [answer_and_close]) as heard, asking(heard) as server:
        for _ in range(3):
            await server.call(release(), m.Done)
            await eventually(lambda: not server._wires._all or len(heard.requests) == 3)
    assert [number for number, _name in heard.requests] == [0, 1, 2]


async def test_a_call_is_not_repeated_when_a_kept_connection_is_reset_under_it() -> None:
    async with serving([answer(), reset]) as heard, asking(heard) as server:
        await server.call(release(), m.Done)
        with pytest.raises(Unreachable):
            await server.call(release(), m.Done)
        assert heard.requests == [(0, "release"), (0, "release")]
        await server.call(release(), m.Done)
    assert heard.requests[2:] == [(1, "release")]


@pytest.mark.parametrize(
    "half",
    [
        said(b'{"is_recorded": true', "Connection: keep-alive").replace(b"th: 20", b"th: 42"),
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"is_',
        b"HTTP/1.1 200",
    ],
    ids=["body", "chunk", "head"],
)
async def test_what_is_left_of_a_cancelled_call_is_no_answer_to_the_next(half: bytes) -> None:
    """The next call's own answer comes on another connection; the first one is cut."""
    has_come = asyncio.Event()

    async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer(half)(reader, writer)
        has_come.set()

    async with serving([answer(), begin], [answer(RECORDED)]) as heard, asking(heard) as server:
        await server.call(release(), m.Done)
        waiting = asyncio.create_task(server.call(release(), m.Done))
        await has_come.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await server.call(complete(), m.Recorded)).is_recorded
        await eventually(lambda: 0 in heard.ended)
    assert [number for number, _name in heard.requests] == [0, 0, 1]


@pytest.mark.parametrize(
    "said_too_much",
    [DONE + said(b"{}"), DONE + b"\r\n", DONE.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")],
    ids=["another answer", "an empty line", "a farewell"],
)
async def test_a_connection_on_which_more_than_the_answer_came_is_used_no_more(said_too_much: bytes) -> None:
    async with serving([answer(said_too_much)]) as heard, asking(heard) as server:
        await server.call(release(), m.Done)
        await server.call(release(), m.Done)
    assert [number for number, _name in heard.requests] == [0, 1]


async def test_an_answer_that_nobody_asked_for_ends_an_idle_connection() -> None:
    go_on = asyncio.Event()

    async def twice(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(DONE)
        await go_on.wait()
        writer.write(said(msgspec.json.encode(m.Recorded(is_recorded=False, state="?"))))

    async with serving([twice]) as heard, asking(heard) as server:
        await server.call(release(), m.Done)
        go_on.set()
        await eventually(lambda: 0 in heard.ended or not server._wires._all)
        await server.call(release(), m.Done)
    assert [number for number, _name in heard.requests] == [0, 1]


async def test_a_connection_that_nobody_needs_is_closed_after_its_time() -> None:
    async with serving() as heard:
        wires = Wires(heard.url, keep=(1, 0.05))
        await wires.exchange("POST", "/x", [], b"{}", 100)
        await eventually(lambda: heard.ended == [0], within=5)
        await wires.exchange("POST", "/x", [], b"{}", 100)
        wires.close()
    assert [number for number, _name in heard.requests] == [0, 1]


async def test_an_answer_longer_than_is_wanted_ends_the_connection_under_it() -> None:
    async with serving([answer(said(b"x" * 101))]) as heard:
        wires = Wires(heard.url, keep=(1, 1.0))
        with pytest.raises(AnswerTooLong):
            await wires.exchange("POST", "/x", [], b"{}", 100)
        assert (await wires.exchange("POST", "/x", [], b"{}", 100)).status == 200
        wires.close()
    assert [number for number, _name in heard.requests] == [0, 1]


@pytest.mark.parametrize(
    "noise",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (wire.HEAD_MOST + 1),
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ],
    ids=["no HTTP", "an endless head", "another protocol"],
)
async def test_what_is_no_answer_is_a_fault(noise: bytes) -> None:
    async with serving([answer(noise)]) as heard:
        wires = Wires(heard.url, keep=(1, 1.0))
        async with asyncio.timeout(5):
            with pytest.raises(WireFault):
                await wires.exchange("POST", "/x", [], b"{}", 100)
        wires.close()


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        said(b"{}").replace(b"th: 2", b"th: 3"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwh",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
    ids=["nothing", "head", "body", "chunk", "chunks without their end", "only a foretaste"],
)
async def test_an_answer_that_ends_before_it_is_whole_is_a_fault(begun: bytes) -> None:
    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer(begun)(reader, writer)
        writer.close()

    async with serving([break_off]) as heard:
        wires = Wires(heard.url, keep=(1, 1.0))
        async with asyncio.timeout(5):
            with pytest.raises(WireFault):
                await wires.exchange("POST", "/x", [], b"{}", 100)
            assert (await wires.exchange("POST", "/x", [], b"{}", 100)).status == 200
        wires.close()
    assert [number for number, _name in heard.requests] == [0, 1]


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async def until_the_end(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nwhole")
        writer.close()

    async with serving([until_the_end]) as heard:
        wires = Wires(heard.url, keep=(1, 1.0))
        assert (await wires.exchange("POST", "/x", [], b"{}", 100)).body == b"whole"
        wires.close()


async def test_a_key_that_http_cannot_carry_is_no_crash_and_is_not_shown() -> None:
    async with serving() as heard:
        server = Server(heard.url, "secret\nkey", "account")
        with pytest.raises(Unreachable) as refused:
            await server.call(release(), m.Done)
        await server.close()
    assert "secret" not in refused.value.sentence
    assert heard.requests == []
