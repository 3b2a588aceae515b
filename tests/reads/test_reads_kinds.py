"""Server and collector mean the same by every kind, and everything that can go wrong has words."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.reads.reads_world import Reading

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.codes import UNRECOGNIZED
from lastcall.operations.kinds.fields import SHAPES as OPERATION_SHAPES
from lastcall.protocol.outcomes import Code
from lastcall.reads.codes import REASONS, known
from lastcall.reads.kinds import KINDS
from lastcall.reads.kinds.fields import SHAPES
from lastcall.reads.states import READ_KEPT, READ_LIFE
from lastcall.vrchat.errors import ProviderFault
from lastcall.vrchat.reads import READS

MEMBERSHIP = Feature.MEMBERSHIP_MANAGEMENT


def fields(shape: type) -> dict[str, bool]:
    """The fields by their names on the wire, and whether each may be null."""
    return {
        one.encode_name: type(None) in getattr(one.type, "__args__", ())
        for one in msgspec.structs.fields(shape)
    }


def test_both_sides_have_the_same_kinds() -> None:
    assert set(KINDS) == set(READS)


@pytest.mark.parametrize("name", KINDS)
def test_both_sides_of_a_kind_agree(name: str) -> None:
    asked, read = KINDS[name], READS[name]
    assert set(fields(asked.params)) == set(fields(read.params))
    assert fields(asked.item) == fields(read.item)
    assert set(asked.grants) == set(read.grants)
    assert asked.feature == read.feature


NEEDED = {
    "members": (Permission.VIEW_MEMBERS, MEMBERSHIP),
    "search": (Permission.VIEW_MEMBERS, MEMBERSHIP),
    "member": (Permission.VIEW_MEMBERS, MEMBERSHIP),
    "requests": (Permission.APPROVE_JOIN_REQUESTS, MEMBERSHIP),
    "invites": (Permission.INVITE_GROUP_MEMBERS, MEMBERSHIP),
    "bans": (Permission.MANAGE_BANS, MEMBERSHIP),
    "roles": (Permission.ASSIGN_VRCHAT_ROLES, MEMBERSHIP),
    "instance_roles": (Permission.MANAGE_INSTANCES, Feature.INSTANCES),
    "instances": (Permission.MANAGE_INSTANCES, Feature.INSTANCES),
    "eligibility": (Permission.MANAGE_INSTANCES, Feature.INSTANCES),
    "posts": (Permission.PUBLISH_POSTS, Feature.POSTS),
}


def test_each_kind_needs_its_permission_and_feature() -> None:
    assert {name: (kind.permission, kind.feature) for name, kind in KINDS.items()} == NEEDED


def test_every_parameter_says_what_it_takes() -> None:
    named = {name for kind in KINDS.values() for name in fields(kind.params)}
    assert named <= set(SHAPES) | set(OPERATION_SHAPES)


def test_no_kind_tells_who_is_where_or_how_many() -> None:
    named = {name for kind in KINDS.values() for name in fields(kind.item)}
    assert not {name for name in named if "location" in name.lower() or "users" in name.lower()}
    assert not named & {"population", "nUsers", "userCount", "lastLogin", "platform", "state", "notes"}


def faults() -> set[str]:
    found, left = set(), [ProviderFault]
    while left:
        one = left.pop()
        found.add(str(one.reason.value))
        left += one.__subclasses__()
    return found


FOR_WRITES = {Code.FRIENDSHIP, Code.ROLE_SCOPE, Code.PROTECTED_TARGET, Code.GROUP_VISIBILITY}
"""Faults that only stand against sending something."""


def test_every_fault_of_a_read_has_words() -> None:
    assert faults() - FOR_WRITES <= set(REASONS)
    for reason in REASONS.values():
        assert reason.advice.endswith(".")
        assert len(reason.label) <= 40


def test_a_code_that_is_not_known_is_kept_as_such() -> None:
    assert known("something_new") == UNRECOGNIZED
    assert known("timeout") == "timeout"


async def test_the_sql_has_the_same_times(reading: Reading) -> None:
    life, kept = await reading.db.pool.fetchrow("select read_life(), read_kept()")
    assert (life, kept) == (READ_LIFE, READ_KEPT)
    alive = "select is_read_alive(lastcall_now() - $1::interval, lastcall_now())"
    await reading.clock.freeze()
    assert await reading.run(alive, READ_LIFE - timedelta(microseconds=1))
    assert not await reading.run(alive, READ_LIFE)
    assert not await reading.run(alive, timedelta(microseconds=-1))
