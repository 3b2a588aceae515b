"""A calendar's address leads the server nowhere but to the public internet, once, for a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic

import pytest
from structlog.testing import capture_logs
from tests.clubs.house import House
from tests.events.calendars import calendar, vevent

from lastcall.errors import Invalid
from lastcall.events.imports import feeds
from lastcall.events.imports.entries import DOCUMENT_CAP
from lastcall.events.imports.feeds import feed_address, feed_host, fetch_feed
from lastcall.events.services.importing import import_feed
from lastcall.outgoing import addresses

CALENDAR = calendar(vevent("1", ";VALUE=DATE:20980101"))
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/calendar\r\nConnection: close\r\n\r\n"


@dataclass
class Feed:
    """A server on loopback that counts what it is asked."""

    answer: bytes
    holds: bool = False
    asked: list[bytes] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        try:
            await writer.drain()
            if self.holds:
                await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def serving(answer: bytes, *, holds: bool = False) -> AsyncIterator[Feed]:
    feed = Feed(answer, holds)
    server = await asyncio.start_server(feed.serve, "127.0.0.1", 0)
    feed.port = server.sockets[0].getsockname()[1]
    try:
        yield feed
    finally:
        server.close()
        await server.wait_closed()


@pytest.fixture
def public_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1 is the public internet and every other address is not; and it speaks plain http."""
    monkeypatch.setattr(addresses, "is_public", lambda address: address == "127.0.0.1")
    monkeypatch.setattr(feeds, "checked_url", lambda url: url)


def told(*answers: list[str]) -> addresses.Resolve:
    """A name server that tells these, one after the other."""
    left = list(answers)

    async def look_up(host: str, port: int) -> list[str]:
        return left.pop(0)

    return look_up


@pytest.mark.usefixtures("public_loopback")
async def test_a_calendar_at_a_public_address_is_fetched_as_it_is() -> None:
    async with serving(OK + CALENDAR) as feed:
        found = await fetch_feed(
            f"http://cal.example.org:{feed.port}/a.ics?key=x", look_up=told(["127.0.0.1"])
        )
    assert found == CALENDAR
    assert feed.asked[0].startswith(b"GET /a.ics?key=x HTTP/1.1\r\n")
    assert b"Cookie" not in feed.asked[0]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "2130706433",
        "169.254.169.254",
        "10.0.0.1",
        "0.0.0.0",
    ],
)
async def test_no_spelling_of_ones_own_network_is_asked(host: str) -> None:
    with pytest.raises(Invalid, match="not on the public internet") as refused:
        await fetch_feed(f"https://{host}:9/calendar.ics")
    assert refused.value.field == "url"


@pytest.mark.parametrize(
    "answers",
    [
        ["10.0.0.1"],
        ["192.168.1.1"],
        ["fd00::1"],
        ["::ffff:10.0.0.1"],
        ["93.184.215.14", "10.0.0.1"],
        ["64:ff9b::a00:1"],
    ],
)
async def test_a_name_with_a_private_address_is_not_asked(answers: list[str]) -> None:
    with pytest.raises(Invalid, match="not on the public internet"):
        await fetch_feed("https://cal.example.org/a.ics", look_up=told(answers))


@pytest.mark.usefixtures("public_loopback")
async def test_a_name_is_looked_up_once_and_the_address_that_was_judged_is_asked() -> None:
    async with serving(OK + CALENDAR) as feed:
        look_up = told(["127.0.0.1"], ["127.0.0.2"])
        url = f"http://cal.example.org:{feed.port}/"
        assert await fetch_feed(url, look_up=look_up) == CALENDAR
        with pytest.raises(Invalid, match="not on the public internet"):
            await fetch_feed(url, look_up=look_up)
    assert len(feed.asked) == 1


@pytest.mark.usefixtures("public_loopback")
async def test_twin_without_the_guard_the_address_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(OK + CALENDAR) as feed:
        url = f"http://cal.example.org:{feed.port}/"
        monkeypatch.setattr(addresses, "is_public", lambda _: False)
        with pytest.raises(Invalid, match="public internet"):
            await fetch_feed(url, look_up=told(["127.0.0.1"]))
        monkeypatch.setattr(addresses, "is_public", lambda _: True)
        assert await fetch_feed(url, look_up=told(["127.0.0.1"])) == CALENDAR
    assert len(feed.asked) == 1


@pytest.mark.usefixtures("public_loopback")
@pytest.mark.parametrize(
    "place", ["/other.ics", "http://127.0.0.1:9/", "https://169.254.169.254/latest", "file:///etc/passwd"]
)
async def test_a_redirect_is_followed_nowhere(place: str) -> None:
    answer = f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode()
    async with serving(answer) as feed:
        with pytest.raises(Invalid, match="leads to another one"):
            await fetch_feed(f"http://cal.example.org:{feed.port}/", look_up=told(["127.0.0.1"]))
    assert len(feed.asked) == 1


@pytest.mark.usefixtures("public_loopback")
@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (OK + b"x" * (DOCUMENT_CAP + 1), "longer than any expected"),
        (OK[:-2] + b"Content-Length: 99999999999\r\n\r\nx", "no connection"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answers 404"),
        (b"garbage\r\n\r\n", "no connection"),
        (b"", "no connection"),
    ],
)
async def test_what_comes_back_is_bounded_and_a_failure_has_a_sentence(answer: bytes, sentence: str) -> None:
    async with serving(answer) as feed:
        with pytest.raises(Invalid, match=sentence) as refused:
            await fetch_feed(f"http://cal.example.org:{feed.port}/", look_up=told(["127.0.0.1"]))
    assert refused.value.advice


@pytest.mark.usefixtures("public_loopback")
@pytest.mark.parametrize("answer", [b"", OK, OK + b"BEGIN:VCALENDAR\r\n"])
async def test_a_server_that_never_ends_its_answer_is_left_after_one_total_time(answer: bytes) -> None:
    begun = monotonic()
    async with serving(answer, holds=True) as feed:
        with pytest.raises(Invalid, match="no whole answer in time"):
            await fetch_feed(
                f"http://cal.example.org:{feed.port}/",
                look_up=told(["127.0.0.1"]),
                total=timedelta(seconds=0.3),
            )
    assert monotonic() - begun < 5


@pytest.mark.parametrize(
    "url",
    ["", "evenings.ics", "http://cal.example.org/", "file:///etc/passwd", "ftp://cal.example.org/", "https://a@cal.example.org/",
     "https://cal.example.org:99999/", "https://cal.example.org/a\r\nHost: b", "https:///nowhere", "https://[::1/", "webcal://"],
)  # fmt: skip
async def test_what_is_no_https_address_is_refused_before_anything_is_looked_up(url: str) -> None:
    with pytest.raises(Invalid) as refused:
        await fetch_feed(url, look_up=told())
    assert refused.value.field == "url"


def test_webcal_is_another_word_for_https() -> None:
    assert feed_address(" webcal://cal.example.org/a.ics ") == "https://cal.example.org/a.ics"
    assert feed_host("WEBCAL://Cal.Example.org/secret") == "cal.example.org"
    assert feed_host("https://[::1/") == ""


@pytest.mark.usefixtures("public_loopback")
async def test_the_address_of_a_feed_is_kept_nowhere_because_it_may_be_a_key(club: House) -> None:
    async with serving(OK + CALENDAR) as feed:
        url = f"http://127.0.0.1:{feed.port}/private-3141592653/basic.ics"
        with capture_logs() as logs:
            document = await import_feed(club.db, club.owner, club.club_id, url)
            with pytest.raises(Invalid):
                await import_feed(club.db, club.owner, club.club_id, url.replace("127.0.0.1", "127.0.0.2"))
    assert (document.source_kind, document.source) == ("feed", "127.0.0.1")
    stored = [
        await club.run(f"select coalesce(string_agg(t::text, '|'), '') from {table} t where club_id = $1")
        for table in ("calendar_imports", "calendar_import_items", "activity_log")
    ]
    assert "3141592653" not in f"{stored} {logs}"
    assert "127.0.0.1" in stored[0]
    assert logs
