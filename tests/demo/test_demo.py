"""The demo with its real processes, on a folder of its own."""

from __future__ import annotations

import logging
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from lastcall.connections.queries import connection_card
from lastcall.db.ids import encode_id, new_id
from lastcall.demo.children import why_it_failed
from lastcall.demo.club import plan_the_night
from lastcall.demo.stage import Stage, stage
from lastcall.errors import Unavailable
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.enqueue import enqueue
from lastcall.operations.tables import Operation
from lastcall.settings import Settings
from lastcall.testing.waiting import eventually

PATIENCE = 40.0


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    """A demo on free ports; root's database lies outside of the home, which only names it."""
    home = tmp_path / "home"
    yield Settings(home=home, port=0, simulator_port=0)
    pointer = home / "database-folder"
    if pointer.is_file():
        shutil.rmtree(pointer.read_text().strip())


async def give_a_role(running: Stage, member: int) -> str:
    """The state in which it ends."""
    payload = {
        "kind": "assign_role",
        "targetUserId": running.seed.members[member],
        "roleId": running.seed.role_ids[0],
    }
    club_id = running.club.club_id
    queued = await enqueue(
        running.db, running.club.owner, club_id, encode_id(new_id()), [payload], Immediate()
    )

    async def ended() -> str | None:
        async with running.db.read() as tx:
            state = await tx.scalar(
                select(Operation.state).where(
                    Operation.club_id == club_id, Operation.id == queued.operation_ids[0]
                )
            )
        return state if state in {"succeeded", "rejected", "indeterminate", "missed"} else None

    state: str = await eventually(ended, within=PATIENCE)
    return state


async def test_a_second_demo_finds_the_club_and_works_although_vrchat_has_begun_anew(
    settings: Settings,
) -> None:
    async with stage(settings, members=10, is_kept=True, say=lambda _: None) as first:
        assert await give_a_role(first, 0) == "succeeded"
    async with stage(settings, members=10, is_kept=True, say=lambda _: None) as second:
        assert second.club.club_id == first.club.club_id
        assert await give_a_role(second, 1) == "succeeded"


async def test_the_demos_first_action_makes_the_groups_roles_known(settings: Settings) -> None:
    async with stage(settings, members=40, is_kept=True, say=lambda _: None) as running:
        await plan_the_night(running.db, running.club, running.seed)

        async def roles() -> list[str]:
            async with running.db.read() as tx:
                card = await connection_card(tx, running.club.club_id)
            return [] if card is None else [role.id for role in card.roles]

        assert set(await eventually(roles, within=PATIENCE)) == set(running.seed.role_ids)


async def test_a_port_of_the_simulator_in_use_is_said_in_the_simulators_own_words(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        taken = Settings(home=settings.home, port=0, simulator_port=port)
        with caplog.at_level(logging.WARNING), pytest.raises(Unavailable, match=f"Port {port}") as refused:
            async with stage(taken, members=10, is_kept=True, say=lambda _: None):
                pytest.fail("the demo started")
    assert "LASTCALL_SIMULATOR_PORT" in refused.value.advice
    assert caplog.messages == []


def test_a_child_that_failed_without_a_word_is_looked_up_in_its_log(tmp_path: Path) -> None:
    log = tmp_path / "simulator.log"
    assert why_it_failed("Traceback …\nKeyError: 'x'\n", log)[1] == f"What it said is in {log}."
    assert why_it_failed("noise\nlastcall: No.\n  Do that.\n", log) == ("No.", "Do that.")
