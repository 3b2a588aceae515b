"""``lastcall operation`` over the database of a club whose actions stand in every way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import pytest
from tests.cli.conftest import Say
from tests.operations.operations_world import World, invitation, make_world

from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.testing.clock import TestClock

Result = TypeVar("Result")
Within = Callable[[Callable[[World], Awaitable[Any]]], Any]
HOUR = timedelta(hours=1)


@pytest.fixture
def within(database_url: str) -> Within:
    """Do something in the club, on a loop of its own: commands begin theirs."""
    made: list[World] = []

    def run(work: Callable[[World], Awaitable[Result]]) -> Result:
        async def inside() -> Result:
            database = await Database.open(database_url)
            try:
                if not made:
                    made.append(await make_world(database, TestClock(database_url)))
                made[0].db = made[0].steps._db = database
                return await work(made[0])
            finally:
                await database.close()

        return asyncio.run(inside())

    return run


async def pass_an_hour(world: World) -> None:
    await world.clock.advance(HOUR)


def test_a_waiting_action_is_explained_in_words_and_as_json(say: Say, within: Within) -> None:
    operation_id = within(lambda world: world.one(invitation(1)))
    told = say("operation", "explain", encode_id(operation_id))
    assert told.exit_code == 0
    assert "Invite to group usr_" in told.output
    assert "/c/club" in told.output
    assert "under the authority of Moderator" in told.output
    assert "It waits for its turn" in told.output
    assert "Queued by Moderator" in told.output
    assert "nonce" not in told.output
    found = json.loads(say("operation", "explain", encode_id(operation_id), "--json").output)
    assert (found["operation"]["state"], found["club"], found["claim"]) == ("pending", "club", None)
    assert [one["what"] for one in found["timeline"]] == ["queued"]
    for wrong, sentence in ((encode_id(new_id()), "no such action"), ("x", "id")):
        refused = say("operation", "explain", wrong)
        assert (refused.exit_code, sentence in refused.output) == (1, True)


@pytest.mark.clause("RCV-03")
def test_one_submission_is_recovered_once_by_its_nonce_and_exact_expiry_and_only_when_its_window_is_over(
    say: Say, within: Within
) -> None:
    operation_id: UUID = within(submitted)
    spelled = encode_id(operation_id)
    claim = json.loads(say("operation", "explain", spelled, "--json").output)["claim"]
    nonce, expiry = claim["nonce"], claim["expiresAt"]
    text = say("operation", "explain", spelled).output
    assert f"nonce     {nonce}" in text

    def recover(*more: str, nonce: str = nonce, expiry: str = expiry) -> Any:
        return say("operation", "recover", spelled, "--nonce", nonce, "--expiry", expiry, *more)

    def state() -> str:
        return str(within(lambda world: world.state(operation_id)))

    early = recover()
    assert (early.exit_code, "can still be reported" in early.output) == (1, True)
    within(pass_an_hour)
    later = (datetime.fromisoformat(expiry) + timedelta(microseconds=1)).isoformat()
    for wrong in ({"nonce": encode_id(new_id())}, {"expiry": later}):
        refused = recover(**wrong)
        assert (refused.exit_code, "not those of the submission" in refused.output) == (1, True)
    assert recover(expiry="tonight").exit_code == 1
    assert recover(expiry="2030-01-01T00:00:00").exit_code == 1
    assert "Nothing was changed" in recover("--dry-run").output
    assert state() == "submitted"
    done = recover()
    assert (done.exit_code, "Outcome unknown" in done.output) == (0, True)
    assert state() == "indeterminate"
    again = recover()
    assert (again.exit_code, "nothing to recover" in again.output) == (1, True)
    rows = within(logged)
    assert [(row["action"], row["actor_name"]) for row in rows] == [("operation.recovered", "command line")]
    assert "Then record what you found" in say("operation", "explain", spelled).output


@pytest.mark.parametrize(
    "guard",
    [
        "v_row.claim_nonce = p_nonce",
        "v_row.claim_expires_at = p_expires_at",
        "v_row.claim_expires_at <= v_now",
    ],
)
def test_twin_without_a_guard_of_the_recovery_another_or_an_open_submission_is_ended(
    say: Say, within: Within, guard: str
) -> None:
    operation_id: UUID = within(submitted)
    spelled = encode_id(operation_id)
    claim = json.loads(say("operation", "explain", spelled, "--json").output)["claim"]
    wrong = dict(claim)
    if "p_nonce" in guard:
        wrong["nonce"] = encode_id(new_id())
    if "p_expires_at" in guard:
        wrong["expiresAt"] = (datetime.fromisoformat(claim["expiresAt"]) - HOUR).isoformat()
    if "v_now" not in guard:
        within(pass_an_hour)

    async def take_away(world: World) -> None:
        source: str = await world.run("select pg_get_functiondef('recover_submission'::regproc)")
        assert guard in source
        await world.db.pool.execute(source.replace(guard, "true"))

    call = ("operation", "recover", spelled, "--nonce", wrong["nonce"], "--expiry", wrong["expiresAt"])
    assert say(*call).exit_code == 1
    within(take_away)
    assert say(*call).exit_code == 0
    assert within(lambda world: world.state(operation_id)) == "indeterminate"


async def submitted(world: World) -> UUID:
    operation_id, _ = await world.claimed(invitation(1))
    await world.run(
        "update operations set state = 'submitted', submitted_at = lastcall_now() where id = $1 returning true",
        operation_id,
    )
    return operation_id


async def logged(world: World) -> Any:
    return await world.db.pool.fetch("select * from activity_log where entity_type = 'operation'")


def test_what_is_late_is_counted_and_then_settled_by_hand_whatever_it_waits_for(
    say: Say, within: Within
) -> None:
    waiting: UUID = within(late_ones)
    assert "Late: 0 waiting, 0 being prepared." in say("operation", "late").output
    within(pass_an_hour)
    dry = say("operation", "late", "--dry-run")
    assert "Late: 1 waiting, 1 being prepared." in dry.output
    assert "Nothing was changed." in dry.output
    assert within(lambda world: world.state(waiting)) == "pending"
    done = say("operation", "late")
    assert (done.exit_code, "Settled: 2 missed." in done.output) == (0, True)
    assert within(lambda world: world.state(waiting)) == "missed"
    told = json.loads(say("operation", "late", "--json").output)
    assert told == {"late": {"pending": 0, "claimed": 0}, "settled": {}, "isDryRun": False}


async def late_ones(world: World) -> UUID:
    """One that is claimed and one that waits."""
    await world.claimed(invitation(1))
    return await world.one(invitation(2))


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("db", "restored", "--yes"), "database_restored"),
        (("club", "archive", "club"), "connection_changed"),
    ],
)
def test_a_command_that_ends_an_epoch_rejects_what_was_not_sent_before_it_returns(
    say: Say, within: Within, command: tuple[str, ...], code: str
) -> None:
    """A server learns of it at its next read only, and people look at once."""
    waiting: UUID = within(lambda world: world.one(invitation(1)))
    within(known_by_its_name)
    assert say(*command).exit_code == 0
    row = within(lambda world: world.row(waiting))
    assert (row["state"], row["code"]) == ("rejected", code)


async def known_by_its_name(world: World) -> None:
    await world.run("insert into directory (kind, key, club_id) values ('slug', 'club', $1)", world.club_id)
