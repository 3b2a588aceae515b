"""What is kept of a look at the group: once, all or nothing, and nothing that names a person."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.telemetry.conftest import WORLD, people, place

from lastcall.connections.connect import set_features
from lastcall.connections.leases import release_lease
from lastcall.connections.states import Feature
from lastcall.errors import Conflict, Invalid, LastcallError
from lastcall.telemetry.collecting import InstancePopulation
from lastcall.telemetry.locations import read_place
from lastcall.telemetry.states import SAMPLE_AGE_MOST


async def counted(stage, table: str) -> int:
    return await stage.db.pool.fetchval(f"select count(*) from {table}")


async def test_a_look_is_kept_with_its_instances_and_their_sum(stage, test_clock):
    now = await test_clock.freeze()
    assert await stage.sample(people(_1=5, _2=0), age=timedelta(seconds=20), member_count=70)
    row = await stage.db.pool.fetchrow("select * from telemetry_samples")
    assert (row["population"], row["instance_count"], row["member_count"]) == (5, 2, 70)
    assert row["observed_at"] == now - timedelta(seconds=20)
    seen = await stage.db.pool.fetch("select location, population from telemetry_instances order by location")
    assert [tuple(one) for one in seen] == [(place(1), 5), (place(2), 0)]


async def test_the_same_poll_twice_is_kept_once(stage):
    assert await stage.sample(people(_1=5), poll_id="poll-of-one-moment")
    assert not await stage.sample(people(_1=9), poll_id="poll-of-one-moment")
    assert await stage.db.pool.fetchval("select population from telemetry_samples") == 5


@pytest.mark.parametrize(
    ("instances", "code"),
    [
        ([InstancePopulation(place(1, "grp_2"), WORLD, 3)], "sample_of_other_group"),
        ([*people(_1=3), InstancePopulation(place(1, tags="~region(eu)"), WORLD, 3)], "sample_malformed"),
        ([InstancePopulation(place(1), "wrld_other", 3)], "sample_malformed"),
        ([InstancePopulation(f"{WORLD}:1~region(eu)", WORLD, 3)], "sample_malformed"),
        ([InstancePopulation(f"{WORLD}:1~group(grp_1)~group(grp_2)", WORLD, 3)], "sample_malformed"),
        ([InstancePopulation(place(1, tags="~private(usr_1)"), WORLD, 3)], "sample_names_person"),
        ([InstancePopulation(place(1, tags="~private(USR_1)"), WORLD, 3)], "sample_names_person"),
    ],
)
async def test_one_wrong_instance_refuses_the_whole_look(stage, instances, code):
    with pytest.raises(LastcallError) as refusal:
        await stage.sample([*people(_7=2), *instances])
    assert refusal.value.code == code
    assert await counted(stage, "telemetry_samples") == 0
    assert await counted(stage, "telemetry_instances") == 0
    assert await stage.windows() == []


async def test_a_look_of_a_quarter_of_an_hour_is_kept_and_an_older_one_refused(stage):
    assert await stage.sample(age=SAMPLE_AGE_MOST)
    assert (await stage.coverage()).observed_at is not None, "the statements' own bound is no tighter"
    last = "select telemetry_last_observed(club_id, id, epoch) from connections"
    assert await stage.db.pool.fetchval(last) is not None
    with pytest.raises(Invalid) as refusal:
        await stage.sample(age=SAMPLE_AGE_MOST + timedelta(milliseconds=1))
    assert refusal.value.code == "sample_too_old"


async def test_one_place_has_one_name_however_its_tags_are_ordered():
    one = read_place(f"{WORLD}:77~region(eu)~group(grp_1)~groupAccessType(plus)")
    other = read_place(f"{WORLD}:77~groupAccessType(plus)~group(grp_1)~region(eu)")
    assert one == other
    assert one.group == "grp_1"


@pytest.mark.clause("COL-04")
async def test_without_analytics_nothing_is_kept(stage):
    rest = set(Feature) - {Feature.ANALYTICS}
    await set_features(stage.db, None, stage.site.club_id, stage.site.connection_id, rest)
    with pytest.raises(Conflict) as refusal:
        await stage.sample(people(_1=5))
    assert refusal.value.code == "analytics_off"
    assert await counted(stage, "telemetry_samples") == 0


@pytest.mark.clause("COL-12")
async def test_a_look_under_a_lease_that_is_over_is_refused(stage):
    await release_lease(stage.db, stage.site.worker, stage.held)
    with pytest.raises(Conflict) as refusal:
        await stage.sample(people(_1=5), held=stage.held)
    assert refusal.value.code == "stale_lease"
    assert await counted(stage, "telemetry_samples") == 0


async def test_the_database_holds_no_place_that_names_a_person(stage):
    await stage.sample()
    with pytest.raises(Exception, match="telemetry_instances_location_check"):
        await stage.db.pool.execute(
            "insert into telemetry_instances select club_id, id, 'wrld_1:1~private(Usr_1)', 'wrld_1', 1"
            " from telemetry_samples"
        )


async def test_the_next_look_is_told_whether_somebody_was_there(stage):
    async def has_visitors() -> bool:
        return await stage.db.pool.fetchval("select has_visitors from connections")

    await stage.db.pool.execute("update connections set telemetry_failures = 2")
    await stage.sample(people(_1=0, _2=1))
    assert await has_visitors()
    assert await stage.db.pool.fetchval("select telemetry_failures from connections") == 0
    await stage.sample(people(_1=0))
    assert not await has_visitors()
