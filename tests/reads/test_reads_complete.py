"""What a worker brings back is kept only under the very claim and the very authority that it was read for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.operations.operations_world import BOT, GROUP, user
from tests.reads.reads_world import SECOND, Reading, another, ban_row, waiting, without

from lastcall.connections.evidence import banned_now
from lastcall.errors import Invalid, LastcallError
from lastcall.protocol.constants import READ_BYTES_MOST, SERVER_EVIDENCE_AGE
from lastcall.reads.codes import REASONS
from lastcall.reads.states import READ_LIFE, ReadState

AGE = timedelta(seconds=20)


async def code_of(reading: Reading, read_id: Any) -> str | None:
    return await reading.run("select code from provider_reads where id = $1", read_id)  # type: ignore[no-any-return]


async def test_a_page_is_shown_as_old_as_it_is(reading: Reading) -> None:
    held = await reading.claimed("bans", {"n": 2, "offset": 4})
    now = await reading.clock.freeze()
    assert await reading.complete(held, ban_row(1), ban_row(2), next_offset=6, total=9, age=AGE)
    read = await reading.look(held.read_id)
    assert read.observed_at is not None
    assert now - AGE - SECOND <= read.observed_at <= now - AGE
    assert read.remaining <= READ_LIFE - AGE
    assert [item.display_name for item in read.items] == ["Guest 1", "Guest 2"]  # type: ignore[attr-defined]
    assert (read.next_offset, read.total, read.code) == (6, 9, None)


async def test_a_page_is_as_old_as_the_older_of_itself_and_its_evidence(reading: Reading) -> None:
    held = await reading.claimed()
    now = await reading.clock.freeze()
    assert await reading.complete(held, evidence=reading.world.evidence(age_ms=20_000))
    read = await reading.look(held.read_id)
    assert read.observed_at is not None
    assert read.observed_at <= now - AGE


@pytest.mark.clause("COL-12")
@pytest.mark.parametrize(
    "change",
    [
        "update leases set released_at = lastcall_now()",
        "update leases set expires_at = lastcall_now()",
        "update leases set fencing_token = 2",
        "update connections set epoch = epoch + interval '1 second'",
        "update connections set state = 'awaiting_invite'",
        "update connections set kill_switch = true",
        "update connections set frozen_at = lastcall_now(), frozen_reason = 'x'",
        "update clubs set state = 'archived', archived_at = lastcall_now()",
        "update provider_reads set claim_nonce = gen_random_uuid()",
        "update provider_reads set claimed_at = lastcall_now() - interval '60 seconds'",
    ],
)
async def test_what_comes_under_another_claim_is_not_kept_and_changes_nothing(
    reading: Reading, change: str
) -> None:
    held = await reading.claimed()
    await reading.run(change)
    before = await reading.run("select r::text from provider_reads r")
    assert not await reading.complete(held, ban_row(1))
    assert not await reading.steps.fail(reading.world.worker, held, "timeout")
    assert await reading.run("select r::text from provider_reads r") == before
    assert await reading.run("select count(*) from evidence") == 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("update worker_keys set revoked_at = lastcall_now()", "worker_key_refused"),
        ("update accounts set credential_generation = 2", "worker_key_refused"),
        ("update accounts set kill_switch = true", "collector_disabled"),
        ("update accounts set state = 'quarantined'", "collector_disabled"),
        ("update fleet_settings set kill_switch = true", "collector_disabled"),
    ],
)
async def test_a_key_or_an_account_that_may_not_work_is_told_so(
    reading: Reading, change: str, code: str
) -> None:
    held = await reading.claimed()
    await reading.run(change)
    with pytest.raises(LastcallError) as refusal:
        await reading.complete(held, ban_row(1))
    assert refusal.value.code == code
    assert await reading.run("select state from provider_reads") == "running"


@pytest.mark.clause("COL-12")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("delete from staff_assignments", "access_expired"),
        ("update staff_roles set permissions = '{view_members}'", "access_expired"),
        ("update connections set features = '{posts}'", "feature_disabled"),
    ],
)
async def test_a_page_that_nobody_may_see_any_more_is_not_kept(
    reading: Reading, change: str, code: str
) -> None:
    held = await reading.claimed()
    await reading.run(change)
    assert not await reading.complete(held, ban_row(1))
    assert await code_of(reading, held.read_id) == code
    assert await reading.run("select items from provider_reads") is None


@pytest.mark.clause("COL-12", "COL-08")
@pytest.mark.parametrize(
    ("seen", "code"),
    [
        ({"permissions": ("group-bans-manage",)}, "provider_permissions"),
        ({"permissions": ()}, "provider_permissions"),
        ({"member_status": "banned"}, "membership"),
        ({"group_id": GROUP[:-1] + "2"}, "provider_scope"),
        ({"user_id": BOT[:-1] + "1"}, "provider_scope"),
        ({"age_ms": 60_000}, "answer_too_old"),
    ],
)
async def test_a_page_needs_evidence_of_this_account_in_this_group_with_these_grants(
    reading: Reading, seen: dict[str, Any], code: str
) -> None:
    held = await reading.claimed()
    assert not await reading.complete(held, ban_row(1), evidence=reading.world.evidence(**seen))
    assert await code_of(reading, held.read_id) == code
    # It stops this read alone: the connection goes on.
    assert await reading.run("select state from connections") == "active"


async def test_evidence_of_another_group_does_not_take_the_place_of_the_good_one(reading: Reading) -> None:
    await reading.answered("bans")
    kept = await reading.run("select body::text from evidence where kind = 'own_member'")
    held = await reading.claimed("requests")
    await reading.complete(held, evidence=reading.world.evidence(group_id="grp_other"))
    assert await reading.run("select body::text from evidence where kind = 'own_member'") == kept


async def test_later_evidence_that_the_account_may_not_counts(reading: Reading) -> None:
    """A preflight saw meanwhile that the grant is gone."""
    first, second = await reading.claimed("bans"), await reading.ask("requests")
    held = await reading.claim()
    assert held is not None
    assert held.read_id == second.id
    assert not await reading.complete(first, evidence=reading.world.evidence(permissions=()))
    assert not await reading.complete(held, evidence=reading.world.evidence(age_ms=5_000))
    assert await code_of(reading, held.read_id) == "provider_permissions"


async def test_a_page_older_than_a_minute_is_refused(reading: Reading) -> None:
    held = await reading.claimed()
    assert not await reading.complete(held, ban_row(1), age=SERVER_EVIDENCE_AGE)
    assert await code_of(reading, held.read_id) == "answer_too_old"


@pytest.mark.parametrize(
    ("items", "next_offset", "field"),
    [
        ([ban_row(1), ban_row(2), ban_row(3)], None, "items"),
        ([ban_row(1), ban_row(2)], 3, "nextOffset"),
        ([ban_row(1), ban_row(2)], 5, "nextOffset"),
        ([], 10, "nextOffset"),
        ([{"userId": user(1), "displayName": "x", "askedAt": None}], None, "items"),
        ([{**ban_row(1), "lastLogin": "2026-01-01"}], None, "items"),
        ([{**ban_row(1), "bannedAt": "yesterday"}], None, "items"),
        ([{**ban_row(1), "displayName": "x" * 601}], None, "items"),
    ],
)
async def test_a_page_that_is_not_what_was_asked_fails_the_read(
    reading: Reading, items: list[dict[str, Any]], next_offset: int | None, field: str
) -> None:
    held = await reading.claimed("bans", {"n": 2, "offset": 10})
    with pytest.raises(Invalid) as refusal:
        await reading.complete(held, *items, next_offset=next_offset)
    assert (refusal.value.code, refusal.value.field) == ("answer_refused", field)
    assert await code_of(reading, held.read_id) == "answer_refused"
    assert await reading.run("select count(*) from evidence") == 0


async def test_a_page_has_at_most_half_a_megabyte(reading: Reading) -> None:
    posts = [
        {
            "postId": f"not_{number}",
            "title": "t",
            "text": "x" * 20_000,
            "visibility": "group",
            "roleIds": [],
            "imageId": None,
            "createdAt": None,
        }
        for number in range(26)
    ]
    held = await reading.claimed("posts", {"n": 100})
    with pytest.raises(Invalid) as refusal:
        await reading.complete(held, *posts)
    assert str(READ_BYTES_MOST) in refusal.value.sentence
    held = await reading.claimed("posts", {"n": 100})
    assert await reading.complete(held, *posts[:24], next_offset=24)


async def test_only_people_who_were_asked_about_are_answered_for(reading: Reading) -> None:
    asked = {"targetUserIds": [user(1)]}
    row = {"userId": user(1), "friendship": "friend", "destination": "none"}
    held = await reading.claimed("eligibility", asked)
    with pytest.raises(Invalid):
        await reading.complete(held, row, row)
    held = await reading.claimed("eligibility", asked)
    with pytest.raises(Invalid):
        await reading.complete(held, row, next_offset=1)


async def test_a_page_is_kept_once(reading: Reading) -> None:
    held = await reading.claimed()
    assert await reading.complete(held, ban_row(1))
    assert not await reading.complete(held, ban_row(2))
    assert not await reading.steps.fail(reading.world.worker, held, "timeout")
    read = await reading.look(held.read_id)
    assert [item.user_id for item in read.items] == [user(1)]  # type: ignore[attr-defined]


@pytest.mark.clause("COL-06")
async def test_why_there_is_no_page_is_kept_and_the_connection_goes_on(reading: Reading) -> None:
    held = await reading.claimed()
    assert await reading.steps.fail(reading.world.worker, held, "rate_limit")
    read = await reading.look(held.read_id)
    assert (read.state, read.code) == (ReadState.FAILED, "rate_limit")
    assert read.reason == REASONS["rate_limit"]
    assert not await reading.complete(held, ban_row(1))
    assert await reading.run("select state from connections") == "active"
    held = await reading.claimed("requests")
    assert await reading.steps.fail(reading.world.worker, held, "something_new")
    assert (await reading.look(held.read_id)).code == "unrecognized"


async def test_what_a_page_tells_is_what_enqueue_asks(reading: Reading) -> None:
    await reading.answered("bans", ban_row(1))
    world = reading.world
    now = await reading.clock.now()
    async with reading.db.read() as tx:
        asked = (world.club_id, world.connection_id, world.epoch, now, [user(1), user(2)])
        assert await banned_now(tx, *asked) == {user(1)}


async def test_a_permission_taken_while_a_page_waits_for_its_locks_is_seen(reading: Reading) -> None:
    held = await reading.claimed()
    async with another(reading) as other:
        await other.execute("update club_gates set generation = generation + 1")
        await other.execute("update staff_roles set permissions = '{}'")
        task = await waiting(reading, reading.complete(held, ban_row(1)), other)
    assert not await task
    assert await code_of(reading, held.read_id) == "access_expired"


async def test_twin_a_page_judged_before_the_gate_is_kept_for_nobody(reading: Reading) -> None:
    await without(reading, "lock_for_reading", "for share of c", "")
    held = await reading.claimed()
    async with another(reading) as other:
        await other.execute("update club_gates set generation = generation + 1")
        await other.execute("update staff_roles set permissions = '{}'")
        assert await reading.complete(held, ban_row(1))


FAIL = """
    update provider_reads
       set state = 'failed', code = 'timeout',
           claim_worker_id = null, claim_fencing_token = null, claim_nonce = null, claimed_at = null
"""


async def test_a_read_that_fails_while_its_page_waits_stays_failed(reading: Reading) -> None:
    held = await reading.claimed()
    async with another(reading) as other:
        await other.execute(FAIL)
        task = await waiting(reading, reading.complete(held, ban_row(1)), other)
    assert not await task
    assert await code_of(reading, held.read_id) == "timeout"


async def test_twin_without_the_lock_and_the_state_the_page_overwrites_the_end(reading: Reading) -> None:
    await without(reading, "lock_read", "for no key update", "")
    await without(reading, "complete_read", "and r.state is not distinct from 'running'", "")
    held = await reading.claimed()
    async with another(reading) as other:
        await other.execute(FAIL.replace("'failed', code = 'timeout'", "'pending'"))
        task = await waiting(reading, reading.complete(held, ban_row(1)), other)
    assert await task, "it was another claim's already"


async def test_twin_without_looking_at_the_group_a_page_of_another_one_is_shown(reading: Reading) -> None:
    """What was read of the right group a moment ago would vouch for it."""
    await without(
        reading, "complete_read", "not is_about(p_club, p_connection, p_account, p_evidence)", "false"
    )
    await reading.answered("requests")
    held = await reading.claimed("bans")
    evidence = reading.world.evidence(user_id=BOT[:-1] + "1")
    assert await reading.complete(held, ban_row(1), evidence=evidence)


async def test_a_lease_that_is_taken_over_while_a_page_waits_is_seen(reading: Reading) -> None:
    held = await reading.claimed()
    async with another(reading) as other:
        await other.execute("update connection_gates set generation = generation + 1")
        await other.execute("update leases set fencing_token = fencing_token + 1")
        task = await waiting(reading, reading.complete(held, ban_row(1)), other)
    assert not await task
    assert (await reading.look(held.read_id)).state is ReadState.RUNNING
