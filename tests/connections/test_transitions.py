"""The table of what a look leads to, over everything that can be seen."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from lastcall.connections import diagram
from lastcall.connections.states import PASSABLE, USABLE, ConnectionState, GroupVisibility, JoinPolicy
from lastcall.connections.transitions import (
    DISCONNECT,
    LEFT,
    REJOIN,
    TRANSITIONS,
    Standing,
    join_policy,
    next_state,
    standing_of,
    visibility_of,
)

S = ConnectionState
LOOKED_AT = PASSABLE - {S.DISCONNECTING}
JOIN_STATES = ("open", "request", "invite", "closed", "a word of next year")


def test_the_page_is_what_the_tables_make():
    page = Path(__file__).parents[2] / "docs/explanation/connection-states.md"
    assert page.read_text(encoding="utf-8") == diagram.page()


def test_every_state_has_an_answer_to_everything_that_can_be_seen():
    assert set(TRANSITIONS) == set(product(ConnectionState, Standing, JoinPolicy))


@pytest.mark.parametrize(
    ("membership", "expected"),
    [
        ("member", S.ACTIVE),
        ("requested", S.AWAITING_APPROVAL),
        ("invited", S.AWAITING_INVITE),
        ("banned", S.BLOCKED),
        ("userblocked", S.BLOCKED),
    ],
)
def test_what_the_account_is_to_the_group_decides_whatever_the_group_takes_in(membership, expected):
    assert {next_state(one, membership, join) for one in LOOKED_AT for join in JOIN_STATES} == {expected}


@pytest.mark.parametrize(
    ("join_state", "expected"),
    [
        ("open", S.CONNECTING),
        ("request", S.CONNECTING),
        ("a word of next year", S.CONNECTING),
        ("invite", S.AWAITING_INVITE),
        ("closed", S.AWAITING_INVITE),
    ],
)
def test_who_is_connecting_and_not_in_tries_again_unless_somebody_must_invite_it(join_state, expected):
    assert next_state(S.CONNECTING, "inactive", join_state) is expected


def test_who_was_removed_or_declined_never_joins_again_by_itself():
    states = LOOKED_AT - {S.CONNECTING}
    found = {next_state(one, "inactive", join) for one in states for join in JOIN_STATES}
    assert found == {S.AWAITING_INVITE}
    assert S.AWAITING_INVITE in REJOIN.leaves


@pytest.mark.clause("COL-09")
def test_no_look_moves_a_connection_that_leaves_or_that_nobody_looks_at():
    still = set(ConnectionState) - LOOKED_AT
    moved = {
        (one, membership, join)
        for one, membership, join in product(still, [*Standing, "a word of next year"], JOIN_STATES)
        if next_state(one, membership, join) is not one
    }
    assert moved == set()


def test_a_word_that_nobody_knows_is_no_membership_and_no_policy():
    assert standing_of("a word of next year") is Standing.INACTIVE
    assert join_policy("a word of next year") is JoinPolicy.UNKNOWN
    assert visibility_of("a word of next year") is GroupVisibility.UNKNOWN
    assert (visibility_of("default"), visibility_of("private")) == (
        GroupVisibility.PUBLIC,
        GroupVisibility.PRIVATE,
    )


def test_every_state_can_be_left_and_an_end_is_one_way():
    reached = {to for (state, *_), to in TRANSITIONS.items() if to is not state}
    assert S.DISCONNECTED not in reached
    assert DISCONNECT.leaves == set(ConnectionState) - {S.DISCONNECTING, S.DISCONNECTED}
    assert (LEFT.leaves, LEFT.to) == ({S.DISCONNECTING}, S.DISCONNECTED)
    assert USABLE < PASSABLE
