"""What a person finds out about an unknown outcome stands beside the row, and rests on what was read afterwards."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from operations_world import BOT, World, ban, invitation, user

from lastcall.clubs.policy import require_staff
from lastcall.errors import Conflict, Invalid, LastcallError, NotFound
from lastcall.operations.services import settle
from lastcall.operations.services.settle import settle_unknown
from lastcall.operations.settling import EvidenceItem, Finding, Verdict, evidence_of, findings_of
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.protocol.constants import SUBMISSION_LIFE
from lastcall.protocol.outcomes import Outcome
from lastcall.testing.locks import wait_until_blocked

SECOND = timedelta(seconds=1)


async def unknown(world: World, payload: dict[str, str] | None = None, *, is_over: bool = True) -> UUID:
    """An action whose collector lost the answer; ``is_over``: nothing can be on its way any more."""
    operation_id, held = await world.submitted(payload or ban(1))
    await world.steps.complete(world.worker, held, Outcome.INDETERMINATE, "timeout")
    if is_over:
        await world.clock.advance(SUBMISSION_LIFE)
    return operation_id


async def settled(world: World, operation_id: UUID, note: str = "I saw it.", **how: Any) -> Finding:
    verdict = how.pop("verdict", Verdict.HAPPENED)
    actor = how.pop("actor", world.moderator)
    return await settle_unknown(world.db, actor, world.club_id, operation_id, verdict, note, **how)


async def found(world: World, operation_id: UUID) -> list[EvidenceItem]:
    async with world.db.read() as tx:
        standing = await require_staff(tx, world.moderator, world.club_id, scope=Scope.READ)
        return await evidence_of(tx, standing, world.moderator, world.club_id, operation_id)


async def bans_read(world: World, *banned: str, page: str = "0", at: datetime | None = None) -> None:
    """A read of a page of the group's bans, as ``connections/`` keeps it."""
    await world.db.pool.execute(
        """
        insert into evidence (club_id, connection_id, kind, subject, epoch, body, observed_at, account_id, worker_id)
        values ($1, $2, 'bans', $3, $4, jsonb_build_object('bannedUserIds', $5::text[]), $6, $7, $8)
            on conflict (club_id, connection_id, kind, subject) do update
           set body = excluded.body, observed_at = excluded.observed_at
        """,
        world.club_id,
        world.connection_id,
        page,
        world.epoch,
        list(banned),
        at or await world.clock.now(),
        world.account_id,
        world.worker_id,
    )


async def code_of(settling: Any) -> str:
    with pytest.raises(LastcallError) as refusal:
        await settling
    return refusal.value.code


async def test_a_finding_stands_beside_the_row_which_stays_as_it_is(world: World) -> None:
    operation_id = await unknown(world)
    before = dict(await world.row(operation_id))
    made = await settled(world, operation_id, "  The ban is in the list. ")
    assert (made.number, made.verdict, made.note) == (1, Verdict.HAPPENED, "The ban is in the list.")
    assert made.settled_by_name == "Moderator"
    assert dict(await world.row(operation_id)) == before
    entry = await world.db.pool.fetchrow("select * from activity_log where action = 'operation.settled'")
    assert entry is not None
    assert (entry["actor_id"], entry["entity_id"]) == (world.moderator.person_id, operation_id)


async def test_a_later_finding_does_not_hide_the_first(world: World) -> None:
    operation_id = await unknown(world)
    await settled(world, operation_id, "Not in the list.", verdict=Verdict.NOT_SEEN)
    with pytest.raises(Conflict) as refusal:
        await settled(world, operation_id, "In the list.")
    assert refusal.value.code == "finding_moved"
    assert [one.verdict for one in refusal.value.fresh] == [Verdict.NOT_SEEN]
    await settled(world, operation_id, "In the list.", seen=1, actor=world.owner)
    async with world.db.read() as tx:
        standing = await require_staff(tx, world.moderator, world.club_id, scope=Scope.READ)
        all_of_them = await findings_of(tx, standing, world.moderator, world.club_id, operation_id)
    assert [(one.number, one.verdict, one.settled_by_name) for one in all_of_them] == [
        (1, Verdict.NOT_SEEN, "Moderator"),
        (2, Verdict.HAPPENED, "Owner"),
    ]


async def test_nothing_is_settled_while_it_could_still_be_on_its_way(world: World) -> None:
    await world.clock.freeze()
    operation_id = await unknown(world, is_over=False)
    await world.clock.advance(SUBMISSION_LIFE - timedelta(microseconds=1))
    assert await code_of(settled(world, operation_id)) == "submission_window_open"
    await world.clock.advance(timedelta(microseconds=1))
    assert (await settled(world, operation_id)).number == 1


async def test_only_what_was_read_afterwards_is_relied_on(world: World) -> None:
    await world.clock.freeze()
    operation_id = await unknown(world, ban(1))
    ended = (await world.row(operation_id))["claim_expires_at"]
    await bans_read(world, user(1), at=ended)
    [item] = await found(world, operation_id)
    assert (item.ref, item.is_telling, item.names_target) == ("bans/0", False, True)
    assert await code_of(settled(world, operation_id, "", evidence=["bans/0"])) == "evidence_too_early"
    await world.clock.advance(SECOND)
    await bans_read(world, user(1).upper().replace("USR", "usr"))
    await bans_read(world, user(2), page="1")
    assert [(one.ref, one.is_telling, one.names_target) for one in await found(world, operation_id)] == [
        ("bans/0", True, True),
        ("bans/1", True, False),
    ]
    made = await settled(world, operation_id, "", evidence=["bans/0", "bans/0"])
    await bans_read(world)
    observed = (await world.clock.now()).isoformat()
    assert made.evidence == [
        {"kind": "bans", "observedAt": observed, "namesTarget": True, "said": "the person is named"}
    ]


async def test_what_the_account_may_do_says_nothing_of_what_became_of_a_write(world: World) -> None:
    operation_id = await unknown(world, ban(1))
    assert await world.run("select kind from evidence") == "own_member", "authorize brought it"
    assert await found(world, operation_id) == []
    assert (
        await code_of(settled(world, operation_id, "", evidence=[f"own_member/{BOT}"])) == "evidence_unknown"
    )


async def test_evidence_of_another_epoch_or_from_the_future_is_none(world: World) -> None:
    operation_id = await unknown(world, ban(1))
    await bans_read(world, user(1), at=await world.clock.now() + SECOND * 60)
    assert await found(world, operation_id) == []
    await bans_read(world, user(1))
    await world.run("update evidence set epoch = epoch + interval '1 second' where kind = 'bans'")
    assert await found(world, operation_id) == []


async def test_a_late_result_tells_whenever_it_came(world: World) -> None:
    operation_id, held = await world.submitted(invitation(1))
    await world.steps.complete(world.worker, held, Outcome.INDETERMINATE, "timeout")
    late = await world.steps.complete(world.worker, held, Outcome.REJECTED, "already_member")
    assert late.is_kept_as_evidence
    [item] = await found(world, operation_id)
    assert (item.kind, item.is_telling, item.outcome, item.code) == (
        "late_result",
        True,
        "rejected",
        "already_member",
    )
    await world.clock.advance(SUBMISSION_LIFE)
    made = await settled(world, operation_id, "", verdict=Verdict.NOT_SEEN, evidence=["late_result"])
    assert made.evidence[0]["outcome"] == "rejected"


async def test_a_finding_needs_a_reason(world: World) -> None:
    operation_id = await unknown(world)
    for note in ("", " \n "):
        assert await code_of(settled(world, operation_id, note)) == "reason_missing"
    assert await code_of(settled(world, operation_id, "x" * 2001)) == "note_malformed"


async def test_a_known_outcome_is_not_settled(world: World) -> None:
    operation_id, held = await world.submitted(ban(1))
    await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)
    assert await code_of(settled(world, operation_id)) == "outcome_known"


async def test_whoever_may_not_see_the_action_cannot_settle_it(world: World) -> None:
    operation_id = await unknown(world)
    await world.run("update staff_roles set permissions = '{invite_group_members}'")
    with pytest.raises(NotFound):
        await settled(world, operation_id)


async def two_at_once(world: World, second: Actor) -> list[BaseException | Finding]:
    """Two people settle the same action; the first has written and not committed when the second comes."""
    operation_id = await unknown(world)
    written, go_on = asyncio.Event(), asyncio.Event()

    async def first() -> Finding:
        async with world.db.transaction():
            made = await settled(world, operation_id)
            written.set()
            await go_on.wait()
            return made

    one = asyncio.create_task(first())
    await written.wait()
    other = asyncio.create_task(settled(world, operation_id, actor=second))
    await wait_until_blocked(world.db, "operation")
    go_on.set()
    return await asyncio.gather(one, other, return_exceptions=True)


async def test_of_two_who_settle_at_once_the_second_reads_what_the_first_found(world: World) -> None:
    made, refusal = await two_at_once(world, world.owner)
    assert isinstance(made, Finding)
    assert isinstance(refusal, Conflict)
    assert [one.number for one in refusal.fresh] == [1]


async def test_without_the_lock_the_second_would_end_in_an_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: what was found was read before the wait."""
    monkeypatch.setattr(settle, "_LOCK", settle._LOCK.replace("for no key update", ""))
    _, refusal = await two_at_once(world, world.owner)
    assert isinstance(refusal, asyncpg.UniqueViolationError)


async def test_evidence_that_is_gone_is_refused(world: World) -> None:
    operation_id = await unknown(world)
    with pytest.raises(Invalid) as refusal:
        await settled(world, operation_id, "", evidence=["bans/7"])
    assert (refusal.value.code, refusal.value.field) == ("evidence_unknown", "evidence")
