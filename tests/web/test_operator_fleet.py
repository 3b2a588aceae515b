"""Operators look at accounts and limit them, take them out of work, and give their clubs to others; by pages alone."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Awaitable, Callable
from datetime import date
from html.parser import HTMLParser

import pytest
from tests.web.conftest import Site, Visitor, World

from lastcall.app import deadline_owners, mailer
from lastcall.clock import SYSTEM_CLOCK
from lastcall.connections.account_states import SETTABLE
from lastcall.connections.accounts import add_account, revoke_key, rotate_key, set_account_state
from lastcall.connections.failures import record_failure
from lastcall.connections.hello import Journal, say_hello
from lastcall.connections.states import AccountState, ConnectionState
from lastcall.connections.switches import (
    set_account_limits,
    set_account_switch,
    set_fleet_limit,
    set_fleet_switch,
)
from lastcall.connections.worker import Worker
from lastcall.db.ids import encode_id, new_id
from lastcall.testing.fleet import ready_account
from lastcall.web.account_words import STATES
from lastcall.web.connection_words import STATES as CONNECTION_STATES
from lastcall.web.live import EVERYTHING, LiveHub
from lastcall.web.looks import OWNERS

Visit = Callable[..., Visitor]
LIMITS = {"requests_per_minute": "12", "writes_per_day": "40", "capacity": "3", "reserved_headroom": "1"}


class Words(HTMLParser):
    """What a page says, without its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.said = ""
        self.feed(page)
        self.said = " ".join(self.said.split())

    def handle_data(self, data: str) -> None:
        self.said += data


def said(page: str) -> str:
    return Words(page).said


def account_path(world: World) -> str:
    return f"/operator/accounts/{encode_id(world.key.account_id)}"


def reassign_path(world: World) -> str:
    return f"/operator/reassign/{encode_id(world.club_id)}.{encode_id(world.connection_id)}"


async def test_an_account_shows_what_it_uses_its_clubs_its_collectors_and_how_to_get_a_new_key(
    world: World, visit: Visit
) -> None:
    worker = Worker(world.key.account_id, world.key.generation, new_id(), "usr_1")
    joined = await world.db.pool.fetchval("select (lastcall_now() at time zone 'UTC')::date - 3")
    assert isinstance(joined, date)
    await say_hello(world.db, worker, Journal(new_id(), True), "5.0.0-test", joined)
    page = said((await visit("operator").get(account_path(world))).text)
    for words in (
        "Writes today (UTC)0 of 50 as long as it is young; 1000 later",
        f"At VRChat since{joined.isoformat()}",
        "1 of 100, 84 to be given out",
        "Night Shift",
        "5.0.0-test",
        "lastcall account rotate-key porter",
    ):
        assert words in page, (words, page)
    assert world.key.key not in page


async def test_an_accounts_limits_are_saved_from_one_form_and_what_is_wrong_stands_at_its_field(
    world: World, visit: Visit
) -> None:
    operator = visit("operator")
    path = account_path(world)
    assert (await operator.post(path, LIMITS)).status_code == 303
    stored = dict(await world.db.pool.fetchrow(f"select {', '.join(LIMITS)} from accounts"))
    assert {name: str(value) for name, value in stored.items()} == LIMITS
    for wrong, words in (
        ({"capacity": "many"}, "This is not a whole number."),
        ({"writes_per_day": "0"}, "out of range"),
        ({"reserved_headroom": "4"}, "More places would be kept free"),
    ):
        refused = await operator.post(path, LIMITS | wrong)
        assert refused.status_code == 422
        assert words in refused.text
        (name,) = wrong
        assert f'id="{name}-wrong"' in refused.text
        assert f'value="{wrong[name]}"' in refused.text
    assert dict(await world.db.pool.fetchrow(f"select {', '.join(LIMITS)} from accounts")) == stored


def test_every_state_has_words_and_those_that_operators_set_a_question() -> None:
    assert set(STATES) == set(AccountState)
    assert {state for state, words in STATES.items() if words.button} == SETTABLE
    for words in STATES.values():
        assert words.word
        assert words.means.endswith(".")
        assert bool(words.button) == bool(words.asked) == bool(words.follows)


async def test_every_kind_of_deadline_says_what_it_does(world: World, site: Site) -> None:
    settings = dataclasses.replace(site.settings, maintenance=True)
    mails = mailer(settings, world.db)
    names = {owner.name for owner in deadline_owners(settings, world.db, mails, SYSTEM_CLOCK)}
    assert names == set(OWNERS)


async def test_a_degraded_connection_looks_nowhere_as_if_all_were_well(world: World, visit: Visit) -> None:
    await world.db.pool.execute("update connections set state = 'degraded'")
    look = CONNECTION_STATES[ConnectionState.DEGRADED].look
    assert (look.tone, look.word) == ("wait", ConnectionState.DEGRADED.label)
    for name, path in (
        ("operator", "/operator"),
        ("owner", "/c/night-shift/scheduled"),
        ("owner", "/c/night-shift/connection"),
    ):
        page = (await visit(name).get(path)).text
        chip = re.search(r'<span class="status ([a-z]*)">(?:(?!</span>).)*Degraded', page, re.DOTALL)
        assert chip is not None, path
        assert chip[1] == look.tone, path


async def test_an_account_is_taken_out_of_work_after_a_question_and_back_to_it(
    world: World, visit: Visit
) -> None:
    operator, path = visit("operator"), account_path(world)
    assert "Set to degraded" in (await operator.get(path)).text
    asked = await operator.get(f"{path}/degraded")
    assert "Take porter out of work for a while?" in asked.text
    assert await world.db.pool.fetchval("select state from accounts") == "ready"
    assert (await operator.post(f"{path}/degraded", {})).status_code == 303
    page = (await operator.get(path)).text
    assert STATES[AccountState.DEGRADED].means in page
    assert "Let porter work?" in (await operator.get(f"{path}/ready")).text
    assert (await operator.post(f"{path}/ready", {})).status_code == 303
    assert await world.db.pool.fetchval("select state from accounts") == "ready"
    assert (await operator.get(f"{path}/cooldown")).status_code == 404


async def test_an_operator_confirms_that_it_is_them_before_an_account_may_work_again(
    world: World, visit: Visit
) -> None:
    operator, path = visit("operator"), account_path(world)
    await operator.post(f"{path}/quarantined", {})
    await world.db.pool.execute("update sessions set authenticated_at = authenticated_at - interval '1 h'")
    for asked in (await operator.get(f"{path}/ready"), await operator.post(f"{path}/ready", {})):
        assert asked.status_code == 303
        assert asked.headers["location"].startswith("/sign-in/confirm")
    assert await world.db.pool.fetchval("select state from accounts") == "quarantined"


async def test_a_move_that_is_refused_says_why_and_changes_nothing(world: World, visit: Visit) -> None:
    refused = await visit("operator").post(f"{account_path(world)}/retired", {})
    assert refused.status_code == 409
    assert "still serves" in refused.text
    assert await world.db.pool.fetchval("select state from accounts") == "ready"


async def test_a_club_of_an_account_that_leaves_is_given_to_another(world: World, visit: Visit) -> None:
    operator = visit("operator")
    assert "keeps this" in (await operator.get(reassign_path(world))).text
    assert reassign_path(world) not in (await operator.get("/operator")).text
    other = await ready_account(world.db, "other", "usr_2")
    await operator.post(f"{account_path(world)}/quarantined", {})
    for page in ("/operator", account_path(world)):
        assert reassign_path(world) in (await operator.get(page)).text
    asked = await operator.get(reassign_path(world))
    assert "other: 0 of 100 clubs" in asked.text
    await world.db.pool.execute(
        "update accounts set capacity = 1, reserved_headroom = 1 where alias = 'other'"
    )
    full = await operator.post(reassign_path(world), {"account": ""})
    assert full.status_code == 409
    assert "has room for another club" in full.text
    given = await operator.post(reassign_path(world), {"account": encode_id(other.account_id)})
    assert given.headers["location"] == f"/operator/accounts/{encode_id(other.account_id)}"
    assert await world.db.pool.fetchval("select account_id from connections") == other.account_id


@pytest.mark.parametrize("what", ["fleet", "connection"])
async def test_the_limits_of_fleet_and_clubs_are_set_on_pages(world: World, visit: Visit, what: str) -> None:
    operator = visit("operator")
    key = "all" if what == "fleet" else f"{encode_id(world.club_id)}.{encode_id(world.connection_id)}"
    path = f"/operator/limits/{what}/{key}"
    assert path in (await operator.get("/operator")).text
    asked = await operator.get(path)
    assert "The lowest limit of fleet, account and club counts" in asked.text
    wrong = await operator.post(path, {"requests_per_minute": "0"})
    assert wrong.status_code == 422
    assert 'id="requests_per_minute-wrong"' in wrong.text
    assert (await operator.post(path, {"requests_per_minute": "17"})).status_code == 303
    table = "fleet_settings" if what == "fleet" else "connections"
    assert await world.db.pool.fetchval(f"select requests_per_minute from {table}") == 17


async def test_what_somebody_else_named_is_data_on_these_pages(world: World, visit: Visit) -> None:
    await world.db.pool.execute("update connections set group_name = '<script>alert(1)</script>'")
    await world.db.pool.execute("update clubs set name = '<b>Night</b>'")
    operator = visit("operator")
    await operator.post(f"{account_path(world)}/quarantined", {})
    for path in (account_path(world), reassign_path(world), "/operator"):
        page = (await operator.get(path)).text
        assert "<script>alert" not in page
        assert "<b>Night</b>" not in page
        assert "&lt;b&gt;Night&lt;/b&gt;" in page


async def test_the_operators_page_hears_of_the_fleet_and_of_an_account_that_serves_no_club(
    world: World,
) -> None:
    db, hub = world.db, LiveHub(world.db.bus)

    async def told(change: Awaitable[object]) -> None:
        seen = hub.mark(EVERYTHING)
        await change
        assert hub.mark(EVERYTHING) != seen

    await told(add_account(db, None, "spare", "usr_spare"))
    account_id = await db.pool.fetchval("select id from accounts where alias = 'spare'")
    await told(set_account_state(db, None, account_id, AccountState.READY))
    await told(set_account_limits(db, None, account_id, requests_per_minute=20))
    await told(set_account_switch(db, None, account_id, is_on=True))
    await told(set_account_switch(db, None, account_id, is_on=False))
    await told(set_fleet_switch(db, None, is_on=True))
    await told(set_fleet_switch(db, None, is_on=False))
    await told(set_fleet_limit(db, None, 50))
    await told(rotate_key(db, None, account_id))
    worker = Worker(account_id, 2, new_id(), "usr_spare")
    await told(say_hello(db, worker, Journal(new_id(), True), "5.0.0-test"))
    await told(record_failure(db, worker, None, "authentication", None))
    await told(revoke_key(db, None, account_id))
