"""Live pages: a server-sent event says *something changed*, and the page asks for itself again.

The stream carries no content, only a counter, so it can neither leak what a reader may not see nor show two
versions at once. Each page is served with the counter it was made at; a stream that opens with an older one
says *changed* at once. So nothing is lost between the page and its stream, nor while the stream was broken.
Waiting costs no SQL.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.bus import CacheDrop, Hint, PostCommitBus
from lastcall.deadlines.signals import Missed

KEEP_ALIVE = timedelta(seconds=20)
"""A comment is sent this often, so that proxies keep the stream and a departed reader is noticed."""
COALESCE = timedelta(milliseconds=400)
"""After one *changed* the next waits this long: a batch of a hundred is not a hundred reloads."""

EVERYTHING = (None, "*")
Channel = tuple[UUID | None, str]


class LiveHub:
    """Counts what changed by (club, topic) and wakes the open streams."""

    def __init__(
        self, bus: PostCommitBus, clock: Clock = SYSTEM_CLOCK, joined: Mapping[str, str] | None = None
    ) -> None:
        """``joined``: topics that are also told under another, for pages that show several."""
        self._clock = clock
        self._joined = joined or {}
        self._boot = secrets.token_hex(4)
        self._counts: Counter[Channel] = Counter()
        self._streams: defaultdict[Channel, set[asyncio.Event]] = defaultdict(set)
        self._is_closed = False
        bus.subscribe(Hint, self._hint)
        bus.subscribe(CacheDrop, self._drop)
        bus.subscribe(Missed, self._missed)

    def mark(self, *channels: Channel) -> str:
        """The counter to put on a page that shows these; read it before the page's queries run."""
        return f"{self._boot}-{sum(self._counts[channel] for channel in channels)}"

    def close(self) -> None:
        """End every stream and refuse new ones: the first step of a shutdown."""
        self._is_closed = True
        self._wake_all()

    @property
    def open_streams(self) -> int:
        return sum(len(streams) for streams in self._streams.values())

    def _hint(self, hint: Hint) -> None:
        channels = [(hint.club_id, hint.topic), EVERYTHING]
        if hint.topic in self._joined:
            channels.append((hint.club_id, self._joined[hint.topic]))
        for channel in channels:
            self._counts[channel] += 1
            for woken in self._streams.get(channel, ()):
                woken.set()

    def _drop(self, drop: CacheDrop) -> None:
        # A session that ended must not keep its stream: each one looks at its own again.
        if drop.cache == "session":
            self._wake_all()

    def _missed(self, _: Missed) -> None:
        """What other processes said may be lost, so nobody knows what changed: every page asks again."""
        self._boot = secrets.token_hex(4)
        self._wake_all()

    def _wake_all(self) -> None:
        for streams in self._streams.values():
            for woken in streams:
                woken.set()

    @contextmanager
    def _listening(self, channels: Sequence[Channel]) -> Iterator[asyncio.Event]:
        woken = asyncio.Event()
        for channel in channels:
            self._streams[channel].add(woken)
        try:
            yield woken
        finally:
            for channel in channels:
                self._streams[channel].discard(woken)
                if not self._streams[channel]:
                    del self._streams[channel]

    async def stream(
        self, channels: Sequence[Channel], seen: str, is_welcome: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[str]:
        """The lines of one event stream, until the server stops or the reader's session ends.

        ``seen`` is the counter of the page (or of the last event before the stream broke).
        """
        with self._listening(channels) as woken:
            yield "retry: 1000\n\n"
            while not self._is_closed:
                mark = self.mark(*channels)
                if mark != seen:
                    seen = mark
                    yield f"event: changed\nid: {mark}\ndata: {mark}\n\n"
                    await self._clock.sleep(COALESCE)
                    continue
                try:
                    async with asyncio.timeout(KEEP_ALIVE.total_seconds()):
                        await woken.wait()
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                woken.clear()
                if not await is_welcome():
                    return
