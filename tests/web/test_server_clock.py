"""The server's time for composers: read anew for each question, which the answer names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from tests.web.conftest import Visitor, World

CLOCK = "/c/night-shift/clock"


@pytest.mark.clause("ENQ-10")
async def test_every_question_reads_the_databases_clock_and_is_kept_nowhere(
    visit: Callable[..., Visitor], world: World
) -> None:
    owner = visit("owner")
    for nonce in ("a" * 16, "Z_-9" * 16):
        before = await world.db.pool.fetchval("select lastcall_now()")
        answer = await owner.get(f"{CLOCK}?nonce={nonce}")
        after = await world.db.pool.fetchval("select lastcall_now()")
        assert answer.json()["nonce"] == nonce
        assert before <= datetime.fromisoformat(answer.json()["now"]) <= after
        assert datetime.fromisoformat(answer.json()["now"]).utcoffset() == timedelta(0)
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("nonce", ["", "a" * 15, "a" * 65, "a" * 15 + "%0A", "a" * 15 + "!"])
async def test_without_a_nonce_there_is_no_answer(visit: Callable[..., Visitor], nonce: str) -> None:
    assert (await visit("owner").get(f"{CLOCK}?nonce={nonce}")).status_code == 422
