"""The status line and the figures for Prometheus."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import socket
import urllib.request

import pytest
import structlog
from collector_bench import Bench, nobody_to_ask

from lastcall.collector.main import serve
from lastcall.errors import Unavailable
from lastcall.testing.waiting import eventually


@pytest.mark.clause("BUD-03")
async def test_one_line_a_minute_says_what_was_done_and_none_when_nothing_was(bench: Bench) -> None:
    await bench.server.until("hello")
    await bench.end()
    with structlog.testing.capture_logs() as lines:
        bench.start()
        await bench.server.until("hello", 2)
        await bench.server.add("assign_role", **bench.role())
        await bench.server.ask("bans", n=5)
        await bench.server.until("release")

        def shown() -> list[dict[str, object]]:
            return [dict(line) for line in lines if line["event"] == "status"]

        await bench.advance(61)
        await eventually(lambda: len(shown()) == 1, within=10)
        for _ in range(3):
            await bench.advance(61)
        await bench.server.add("assign_role", **bench.role())
        await bench.server.until("release", 2)
        await bench.advance(61)
        await eventually(lambda: shown()[-1]["written"] == 2, within=10)
        assert len(shown()) <= 3, "five minutes, in two or three of which something changed"
        assert all(earlier != later for earlier, later in itertools.pairwise(shown()))
        line = shown()[0]
        assert (line["accounts"], line["written"], line["reads"]) == (1, 1, 1)
        assert line["requests"] == 4, "the proof of the start, the group, the write, the page"
        assert line["log_level"] == "info"


async def test_the_figures_are_shown_on_loopback(bench: Bench) -> None:
    await bench.server.until("hello")
    await bench.end()
    with structlog.testing.capture_logs() as lines:
        running = asyncio.create_task(
            serve(
                dataclasses.replace(bench.config(), metrics_port=0),
                nobody_to_ask,
                bench.stop,
                clock=bench.time.clock,
            )
        )
        bench.stop.clear()
        await bench.server.until("hello", 2)
        await bench.server.add("assign_role", **bench.role())
        await bench.server.until("release")
        (url,) = [line["url"] for line in lines if line["event"] == "metrics"]
        assert url.startswith("http://127.0.0.1:")
        text = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=10).read().decode())
        bench.stop.set()
        assert await asyncio.wait_for(running, 15) == 0
    assert 'lastcall_collector_operations_total{account="account",outcome="succeeded"} 1.0' in text
    assert 'lastcall_collector_requests_total{account="account"} 3.0' in text
    assert 'lastcall_collector_may_ask{account="account"} 1.0' in text
    assert "process_resident_memory_bytes" in text
    assert "key" not in text.split(), "no secret is a figure"


async def test_a_port_that_is_taken_stops_the_start_with_one_sentence(bench: Bench) -> None:
    await bench.server.until("hello")
    await bench.end()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=f"cannot be shown on port {port}"):
            await serve(
                dataclasses.replace(bench.config(), metrics_port=port),
                nobody_to_ask,
                asyncio.Event(),
                clock=bench.time.clock,
            )
