"""Results of what was sent: kept whatever changed since, for exactly that submission, and never twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from lastcall.connections.accounts import revoke_key, rotate_key, set_account_state
from lastcall.connections.connect import disconnect_club
from lastcall.connections.reassigning import reassign_connection
from lastcall.connections.restored import restored
from lastcall.connections.states import AccountState
from lastcall.connections.switches import set_account_switch, set_connection_switch, set_fleet_switch
from lastcall.testing.fleet import ready_account
from lastcall.testing.routines import replace_routine
from tests.acceptance.desk import NOTHING_PASSES, Desk, told

Change = Callable[[Desk], Awaitable[Any]]


async def _reassigned(desk: Desk) -> None:
    """The other account serves the club; the first may do nothing but tell what became of what it sent."""
    await ready_account(desk.db, "another", "usr_2")
    await set_account_state(desk.db, None, desk.account_id, AccountState.QUARANTINED)
    await reassign_connection(desk.db, None, desk.club_id, desk.connection_id, None)


async def _rotated(desk: Desk) -> None:
    desk.collector.key = (await rotate_key(desk.db, None, desk.account_id)).key


async def _released(desk: Desk) -> None:
    told(await desk.collector("release", lease=desk.collector.lease))


async def _replaced(desk: Desk) -> None:
    await _released(desk)
    await desk.another_collector().take()


async def _claim_over(desk: Desk) -> None:
    """The lease is renewed, so it is the claim's own time that is over."""
    await desk.pass_by(timedelta(minutes=2))
    told(await desk.collector("renew", lease=desk.collector.lease))
    await desk.pass_by(timedelta(minutes=2))


CHANGES: dict[str, Change] = {
    "disconnected": lambda desk: disconnect_club(desk.db, None, desk.club_id, desk.connection_id),
    "a new epoch": lambda desk: restored(desk.db, None),
    "connection stopped": lambda desk: set_connection_switch(
        desk.db, None, desk.club_id, desk.connection_id, is_on=True
    ),
    "fleet stopped": lambda desk: set_fleet_switch(desk.db, None, is_on=True),
    "account stopped": lambda desk: set_account_switch(desk.db, None, desk.account_id, is_on=True),
    "account in quarantine": lambda desk: set_account_state(
        desk.db, None, desk.account_id, AccountState.QUARANTINED
    ),
    "reassigned": _reassigned,
    "a new key": _rotated,
    "lease released": _released,
    "lease of another": _replaced,
    "lease over": lambda desk: desk.pass_by(timedelta(minutes=5)),
    "claim over": _claim_over,
}


@pytest.mark.clause("WRK-06")
@pytest.mark.parametrize("change", list(CHANGES))
async def test_a_result_is_recorded_whatever_changed_while_nothing_before_the_write_passes(
    desk: Desk, change: str
) -> None:
    sent, held = await desk.submitted(1), await desk.claimed(2)
    await CHANGES[change](desk)
    assert await desk.collector.before_authorization(held) == NOTHING_PASSES
    row = await desk.row(held)
    assert (row["submitted_at"], row["state"] in ("pending", "claimed")) == (None, True)
    answer = told(await desk.collector.complete(sent))
    assert (answer["isRecorded"], answer["state"]) == (True, "succeeded")
    assert await desk.state(sent) == ("succeeded", None)


ALSO_ASKED = {
    "lease released": "and lease_is_current(p_club, p_connection, p_account, p_worker, p_token, judged_at)",
    "a new epoch": "and connection_obstacle(p_club, p_connection, p_account, p_epoch, judged_at) = 'none'",
    "account in quarantine": "and account_obstacle(p_account, judged_at) = 'none'",
}
"""What a step before the write asks, and complete must not."""


@pytest.mark.parametrize("change", list(ALSO_ASKED))
async def test_twin_a_complete_that_asks_what_the_other_steps_ask_loses_the_result(
    desk: Desk, change: str
) -> None:
    """VRChat has done it, and the row says that nobody knows."""
    guard = "and is_claim_of(o, p_account, p_worker, p_connection, p_epoch, p_token, p_nonce)"
    await replace_routine(desk.db, "complete_operation", guard, f"{guard} {ALSO_ASKED[change]}")
    sent = await desk.submitted()
    await CHANGES[change](desk)
    assert not told(await desk.collector.complete(sent))["isRecorded"]
    await desk.pass_by(timedelta(minutes=2))
    await desk.turn("submission_recovery")
    assert await desk.state(sent) == ("indeterminate", "submission_outcome_unknown")


# --- recovery without anything that works ----------------------------------------------------------------------


async def _nothing_works(desk: Desk) -> None:
    await disconnect_club(desk.db, None, desk.club_id, desk.connection_id)
    await revoke_key(desk.db, None, desk.account_id)


async def test_recovery_needs_neither_connection_nor_key_and_what_comes_late_replaces_nothing(
    desk: Desk,
) -> None:
    sent = await desk.submitted()
    await _nothing_works(desk)
    assert (await desk.collector.complete(sent)).status_code == 401
    await desk.pass_by(timedelta(minutes=2))
    await desk.turn("submission_recovery")
    unknown = ("indeterminate", "submission_outcome_unknown")
    assert await desk.state(sent) == unknown
    before = await desk.row(sent)
    await _rotated(desk)
    late = told(await desk.collector.complete(sent))
    assert (late["isRecorded"], late["state"], late["isKeptAsEvidence"]) == (False, "indeterminate", True)
    assert await desk.row(sent) == before
    assert await desk.state(sent) == unknown
    assert await desk.notices() == [(sent["operationId"], *unknown)]


async def test_recovery_comes_no_sooner_than_two_minutes(desk: Desk) -> None:
    sent = await desk.submitted()
    await _nothing_works(desk)
    await desk.pass_by(timedelta(minutes=2) - timedelta(microseconds=1))
    await desk.turn("submission_recovery")
    assert await desk.state(sent) == ("submitted", None)
    await _rotated(desk)
    assert told(await desk.collector.complete(sent))["isRecorded"]


async def test_a_second_result_is_refused_and_changes_nothing(desk: Desk) -> None:
    sent = await desk.submitted()
    assert told(await desk.collector.complete(sent))["isRecorded"]
    before = await desk.row(sent)
    again = told(
        await desk.collector("complete", claim=sent["claim"], outcome="rejected", code="provider_error")
    )
    assert (again["isRecorded"], again["state"]) == (False, "succeeded")
    assert await desk.row(sent) == before
    assert await desk.collector.claim() is None
