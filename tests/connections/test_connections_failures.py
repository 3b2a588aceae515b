"""Failures: a shared fault stops the whole account, an ordinary one backs off its connection."""

from __future__ import annotations

import itertools
import math
from datetime import timedelta

import pytest
from tests.connections.conftest import FIRST_TOKEN, build_site

from lastcall.connections.accounts import rotate_key, set_account_state
from lastcall.connections.evidence import evidence_body
from lastcall.connections.failures import BACKOFF_MOST, COOLDOWN_MOST, COOLDOWN_USUAL, record_failure
from lastcall.connections.states import AccountState
from lastcall.errors import Conflict, Disabled, Invalid, NotSignedIn
from lastcall.protocol.messages import OwnMemberEvidence


async def cooldown(site) -> timedelta | None:
    return await site.db.pool.fetchval(
        "select cooldown_until - lastcall_now() from accounts where id = $1", site.worker.account_id
    )


async def test_a_rate_limit_stops_the_whole_account_for_the_providers_time(site, test_clock):
    await test_clock.freeze()
    token = 0
    for retry_after, expected in (
        (None, COOLDOWN_USUAL),
        (0.0, COOLDOWN_USUAL),
        (90.0, timedelta(seconds=90)),
        (86_400.0, timedelta(days=1)),
        (1e300, COOLDOWN_MOST),
        (math.inf, COOLDOWN_MOST),
    ):
        held = await site.lease()
        assert held.fencing_token > token
        token = held.fencing_token
        await record_failure(site.db, site.worker, held, "rate_limit", retry_after)
        assert await cooldown(site) == expected
        await test_clock.advance(expected - timedelta(milliseconds=1))
        with pytest.raises(Disabled):
            await site.lease()
        await test_clock.advance(timedelta(milliseconds=1))


async def test_a_second_rate_limit_never_shortens_the_first(site, test_clock):
    await test_clock.freeze()
    await record_failure(site.db, site.worker, None, "rate_limit", 600.0)
    await record_failure(site.db, site.worker, None, "rate_limit", 5.0)
    assert await cooldown(site) == timedelta(minutes=10)


async def test_a_rate_limit_ends_the_leases_of_all_connections_of_the_account(site, test_clock):
    other = await build_site(site.db, 2)
    await site.set("connections", account_id=site.worker.account_id)
    held = [await site.lease(), await type(site)(**{**vars(other), "worker": site.worker}).lease()]
    await record_failure(site.db, site.worker, held[0], "rate_limit", None)
    open_leases = await site.db.pool.fetchval("select count(*) from leases where released_at is null")
    assert open_leases == 0


async def test_a_refused_sign_in_stops_the_account_until_a_person_puts_it_back(site):
    await record_failure(site.db, site.worker, None, "authentication", None)
    states = await site.db.pool.fetchrow("select a.state as a, c.state as c from accounts a, connections c")
    assert (states["a"], states["c"]) == ("auth_required", "auth_required")
    with pytest.raises(Disabled):
        await site.lease()
    await set_account_state(site.db, None, site.worker.account_id, AccountState.READY)
    assert (await site.lease()).fencing_token == FIRST_TOKEN


async def test_an_account_that_was_quarantined_stays_so_whatever_its_worker_reports(site):
    await set_account_state(site.db, None, site.worker.account_id, AccountState.QUARANTINED)
    await record_failure(site.db, site.worker, None, "rate_limit", None)
    assert await site.db.pool.fetchval("select state from accounts") == "quarantined"


async def test_an_ordinary_failure_backs_off_its_connection_alone_ever_longer(site, test_clock):
    await test_clock.freeze()
    held = await site.lease()
    waits = []
    for _ in range(12):
        await record_failure(site.db, site.worker, held, "schema_drift", None)
        waits.append(await site.db.pool.fetchval("select backoff_until - lastcall_now() from connections"))
    assert timedelta(seconds=4) <= waits[0] <= timedelta(seconds=6)
    assert all(later > earlier for earlier, later in itertools.pairwise(waits[:6]))
    assert max(waits) <= BACKOFF_MOST
    row = await site.db.pool.fetchrow("select state, consecutive_failures from connections")
    assert (row["state"], row["consecutive_failures"]) == ("degraded", 12)
    assert await site.db.pool.fetchval("select state from accounts") == "ready"


async def test_a_connections_backoff_is_never_below_the_providers_own(site, test_clock):
    await test_clock.freeze()
    held = await site.lease()
    await record_failure(site.db, site.worker, held, "provider_unavailable", 3600.0)
    assert await site.db.pool.fetchval("select backoff_until - lastcall_now() from connections") == timedelta(
        hours=1
    )


async def test_a_delay_that_is_none_is_refused(site):
    for retry_after in (-1.0, math.nan):
        with pytest.raises(Invalid) as refusal:
            await record_failure(site.db, site.worker, None, "rate_limit", retry_after)
        assert refusal.value.field == "retryAfterMs"


async def test_an_ordinary_failure_needs_the_lease_and_any_needs_the_current_key(site):
    held = await site.lease()
    with pytest.raises(Invalid):
        await record_failure(site.db, site.worker, None, "schema_drift", None)
    with pytest.raises(Conflict):
        await record_failure(site.db, site.other_worker(), held, "schema_drift", None)
    await rotate_key(site.db, None, site.worker.account_id)
    for code in ("schema_drift", "rate_limit", "authentication"):
        with pytest.raises(NotSignedIn):
            await record_failure(site.db, site.worker, held, code, None)
    row = await site.db.pool.fetchrow("select a.state, c.consecutive_failures from accounts a, connections c")
    assert (row["state"], row["consecutive_failures"]) == ("ready", 0)


def evidence(**changes) -> OwnMemberEvidence:
    facts = {
        "age_ms": 0,
        "group_id": "grp_1",
        "owner_id": "usr_owner",
        "user_id": "usr_1",
        "member_status": "member",
        "permissions": ("group-members-manage",),
        "role_ids": (),
        "roles": (),
        "privacy": "default",
    }
    return OwnMemberEvidence(**{**facts, **changes})


async def store(site, held, body: str, age: timedelta = timedelta(0)) -> bool:
    return await site.db.pool.fetchval(
        "select store_own_member_evidence($1, $2, $3, $4, $5, $6::jsonb, lastcall_now() - $7::interval)",
        site.club_id,
        site.connection_id,
        held.epoch,
        site.worker.account_id,
        site.worker.worker_id,
        body,
        age,
    )


async def test_evidence_of_membership_ends_a_row_of_failures(site):
    held = await site.lease()
    for _ in range(3):
        await record_failure(site.db, site.worker, held, "network", None)
    assert await store(site, held, evidence_body(evidence()))
    row = await site.db.pool.fetchrow("select state, consecutive_failures, backoff_until from connections")
    assert tuple(row) == ("active", 0, None)


async def test_older_evidence_never_replaces_newer(site):
    held = await site.lease()
    await store(site, held, evidence_body(evidence(permissions=("new",))), timedelta(seconds=5))
    assert not await store(site, held, evidence_body(evidence(permissions=("old",))), timedelta(seconds=9))
    kept = await site.db.pool.fetchval("select body->'permissions'->>0 from evidence")
    assert kept == "new"


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [({}, True), ({"user_id": "usr_other"}, False), ({"group_id": "grp_other"}, False)],
)
async def test_evidence_counts_only_for_its_own_account_and_group(site, changes, is_found):
    await site.db.pool.execute("delete from evidence")
    held = await site.lease()
    await store(site, held, evidence_body(evidence(**changes)))
    rows = await site.db.pool.fetch(
        "select * from own_member_evidence($1, $2, $3)", site.club_id, site.connection_id, held.epoch
    )
    assert bool(rows) == is_found


async def test_evidence_of_an_earlier_epoch_is_no_evidence(site):
    held = await site.lease()
    await store(site, held, evidence_body(evidence()))
    await site.db.pool.execute("update connections set epoch = epoch + interval '1 microsecond'")
    rows = await site.db.pool.fetch("select own_member_evidence(club_id, id, epoch) from connections")
    assert rows == []


async def test_grants_are_held_by_a_member_only_and_the_star_is_all(site):
    for changes, needs, holds in (
        ({"permissions": ("a", "b")}, ["a", "b"], True),
        ({"permissions": ("a",)}, ["a", "b"], False),
        ({"permissions": ("*",)}, ["a", "b"], True),
        ({"permissions": ()}, [], True),
        ({"permissions": ("*",), "member_status": "banned"}, ["a"], False),
    ):
        answer = await site.db.pool.fetchval(
            "select holds_grants($1::jsonb, $2)", evidence_body(evidence(**changes)), needs
        )
        assert answer is holds, changes


async def test_garbage_grants_nothing(site):
    for body in ("{}", "null", '{"memberStatus": "member", "permissions": "*"}'):
        assert await site.db.pool.fetchval("select holds_grants($1::jsonb, array['a'])", body) is False
