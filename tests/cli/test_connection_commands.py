"""``lastcall connection``: the life of a connection from the host's command line."""

from __future__ import annotations

import asyncio

import pytest
from tests.cli.conftest import Say

from lastcall.db.database import Database

GROUP = "grp_00000000-0000-4000-8000-000000000001"
USER = "usr_00000000-0000-4000-8000-000000000001"


@pytest.fixture
def connected(say: Say) -> None:
    for words in (
        ("person", "add", "ada@example.org"),
        ("club", "add", "Night Shift", "--owner", "ada@example.org"),
        ("account", "add", "porter", USER),
        ("account", "ready", "porter"),
        ("connection", "add", "night-shift", GROUP),
    ):
        assert say(*words).exit_code == 0


def test_a_connection_without_a_named_account_gets_one_and_shows_that_it_waits_to_be_let_in(
    say: Say, connected: None
) -> None:
    shown = say("connection", "show", "night-shift").output
    assert "porter, ready" in shown
    assert "Connecting" in shown
    assert "membership_management, not looked at yet" in shown


def test_a_fault_and_how_the_analytics_stand_are_shown_in_the_words_of_the_page(
    say: Say, connected: None, database_url: str
) -> None:
    async def fail() -> None:
        database = await Database.open(database_url)
        await database.pool.execute("update connections set last_fault = 'rate_limit'")
        await database.close()

    asyncio.run(fail())
    shown = say("connection", "show", "night-shift").output
    assert "fault      VRChat asked to slow down. It is tried again by itself." in shown
    assert "Nothing to do: its collector looks at the group" in shown
    assert "analytics  Off, last observed never" in shown
    say("connection", "feature", "night-shift", "analytics", "on")
    shown = say("connection", "show", "night-shift").output
    assert "analytics  Unknown, last observed never" in shown
    assert "Missing time is not counted as empty." in shown


def test_a_look_is_asked_for_and_joining_again_is_refused_where_it_is_under_way(
    say: Say, connected: None
) -> None:
    assert "looked at as soon as" in say("connection", "check", "night-shift").output
    refused = say("connection", "rejoin", "night-shift")
    assert (refused.exit_code, "nothing to join again" in refused.output) == (1, True)


def test_one_feature_is_switched_and_the_others_stay(say: Say, connected: None) -> None:
    assert "Posts is on" in say("connection", "feature", "night-shift", "posts", "on").output
    shown = say("connection", "show", "night-shift").output
    assert "membership_management" in shown
    assert "posts" in shown
    assert say("connection", "feature", "night-shift", "dancing", "on").exit_code == 1


def test_a_disconnected_group_is_free_again_once_its_account_has_left_or_never_will(
    say: Say, connected: None
) -> None:
    assert "leaves the group now" in say("connection", "disconnect", "night-shift").output
    early = say("connection", "add", "night-shift", GROUP)
    assert (early.exit_code, "has not left the group" in early.output) == (1, True)
    assert "stays a member" in say("connection", "disconnect", "night-shift", "--without-leaving").output
    assert say("connection", "show", "night-shift").exit_code == 1
    assert say("connection", "add", "night-shift", GROUP).exit_code == 0
