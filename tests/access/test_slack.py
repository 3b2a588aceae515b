"""A club's Slack: who asks by it, who is linked, and what a replay, a wrong state or a silent Slack changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.access.conftest import Door, email_of, open_door, person
from tests.access.slack_kit import BROWSER, PUBLIC_URL, Workspace, app_of, connect, state_for

from lastcall.access import listeners
from lastcall.access.acceptance import accept_invite
from lastcall.access.deciding import approve_join_request
from lastcall.access.invites import revoke_invite
from lastcall.access.slack import api as api_module
from lastcall.access.slack.channel import SlackChannel
from lastcall.access.slack.installing import finish_install, remove_install, slack_of, team_removed
from lastcall.access.slack.linking import (
    Asked,
    Known,
    confirm_link,
    issue_link,
    preview_link,
    request_access,
    unlink,
)
from lastcall.access.slack.vault import KEY_FILE, Vault
from lastcall.clubs.export import export_club
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.decisions.deliveries.sending import SEND_TIMEOUT
from lastcall.decisions.retention.kinds import JOIN_REQUEST
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound, Unavailable
from lastcall.people.tokens import token_hash
from lastcall.testing.slack import SlackDouble
from lastcall.testing.waiting import eventually


@pytest.fixture
async def workspace(door: Door, tmp_path: Path) -> AsyncIterator[Workspace]:
    async with SlackDouble() as double:
        found = await connect(door, double, tmp_path)
        yield found
        found.slack.api.close()


@pytest.fixture
def coming(door: Door) -> Iterator[list[tuple[int, list[Signal]]]]:
    """What is there and what is published when a request is about to be inserted."""
    seen: list[tuple[int, list[Signal]]] = []

    async def look(tx: Transaction, club_id: UUID, _: datetime) -> None:
        count = await tx.raw.fetchval("select count(*) from join_requests where club_id = $1", club_id)
        seen.append((count, [m for m in tx.messages if isinstance(m, Signal)]))

    kept = listeners._coming.copy()
    listeners._coming.append(look)
    yield seen
    listeners._coming[:] = kept


@pytest.mark.clause("ACC-05")
async def test_asking_signals_in_its_transaction_before_the_request_is_there(
    db: Database, workspace: Workspace, coming: list[tuple[int, list[Signal]]]
) -> None:
    door = workspace.door
    heard: list[Signal] = []
    db.bus.subscribe(Signal, heard.append)
    assert await request_access(db, door.guest, await workspace.link()) is Asked.PENDING
    ((rows, signals),) = coming
    assert rows == 0
    signal = next(one for one in signals if one.owner == JOIN_REQUEST.owner)
    (request,) = await door.requests()
    due = request["activity_at"] + timedelta(days=90)
    assert timedelta(0) <= signal.deadline - due < timedelta(milliseconds=1)
    assert signal in heard, "and leaves with the commit"


@pytest.mark.clause("ACC-05")
async def test_a_replay_finds_the_pending_request_and_changes_nothing(
    db: Database, workspace: Workspace
) -> None:
    door = workspace.door
    token = await workspace.link()
    await request_access(db, door.guest, token)
    before = await door.requests()
    invites = await db.pool.fetch("select *, xmin::text from invites where club_id = $1", door.club_id)
    heard: list[Signal] = []
    db.bus.subscribe(Signal, heard.append)
    for user in (None, "U1", "U2"):
        again = await workspace.link(user) if user else token
        assert await request_access(db, door.guest, again) is Asked.PENDING
    assert await door.requests() == before, "not one column, and no new version of the row"
    assert invites == await db.pool.fetch(
        "select *, xmin::text from invites where club_id = $1", door.club_id
    )
    assert [one for one in heard if one.owner == JOIN_REQUEST.owner] == []


@pytest.mark.clause("ACC-05")
async def test_a_pending_request_of_the_same_address_is_found_whoever_made_it(
    db: Database, workspace: Workspace
) -> None:
    door = workspace.door
    email = await email_of(db, door.guest)
    await request_access(db, door.guest, await workspace.link())
    await db.pool.execute(
        "update join_requests set person_id = null, email = upper($2) where club_id = $1", door.club_id, email
    )
    assert await request_access(db, door.guest, await workspace.link()) is Asked.PENDING
    assert len(await door.requests()) == 1


async def test_whoever_has_an_address_now_is_not_taken_for_whoever_asked_under_it(
    db: Database, workspace: Workspace
) -> None:
    door = workspace.door
    await request_access(db, door.guest, await workspace.link())
    other = await person(db, "other")
    await db.pool.execute(
        "update join_requests set email = $2 where club_id = $1", door.club_id, await email_of(db, other)
    )
    assert await request_access(db, other, await workspace.link("U2")) is Asked.PENDING
    assert {row["person_id"]: row["email"] for row in await door.requests()} == {
        door.guest.person_id: await email_of(db, other),
        other.person_id: None,
    }


async def test_the_request_is_archived_on_time_though_its_invite_was_expired_from_birth(
    db: Database, workspace: Workspace
) -> None:
    door = workspace.door
    await request_access(db, door.guest, await workspace.link())
    (request,) = await door.requests()
    invite = await db.pool.fetchrow("select * from invites where id = $1", request["invite_id"])
    assert (invite["source"], invite["uses"], invite["max_uses"]) == ("slack", 1, 1)
    assert invite["expires_at"] <= invite["accepted_at"]
    assert request["archive_due_at"] == request["activity_at"] + timedelta(days=90)
    with pytest.raises(Conflict):
        await revoke_invite(db, door.owner, door.club_id, invite["id"])


async def test_whoever_was_let_in_opens_the_link_again_and_is_linked(
    db: Database, workspace: Workspace
) -> None:
    door, token = workspace.door, await workspace.link()
    with pytest.raises(NotAllowed):
        await confirm_link(db, door.guest, token)
    await request_access(db, door.guest, token)
    (request,) = await door.requests()
    await approve_join_request(db, door.deputy, door.club_id, request["id"])
    assert await door.held_by(door.guest) == {"event_staff"}
    assert await request_access(db, door.guest, token) is Asked.MEMBER
    await confirm_link(db, door.guest, token)
    await confirm_link(db, door.guest, token)
    assert await workspace.linked() == {"U1": door.guest.person_id}
    answer = await issue_link(db, workspace.team_id, "U1", "robin", token_hash("another"))
    assert answer == Known(f"The {door.slug}", door.slug)
    with pytest.raises(NotFound):
        await confirm_link(db, door.deputy, token)
    await unlink(db, door.guest, door.club_id)
    assert await workspace.linked() == {}


async def test_a_link_is_seen_whole_by_whoever_has_it_and_not_at_all_by_whoever_guesses(
    db: Database, workspace: Workspace
) -> None:
    door, token = workspace.door, await workspace.link()
    async with db.read() as tx:
        seen = await preview_link(tx, token, None)
        assert (seen.club_slug, seen.team_name, seen.slack_name) == (door.slug, "Workspace", "u1")
        assert (seen.is_staff, seen.is_waiting, seen.is_linked) == (False, False, False)
        assert (await preview_link(tx, token, door.owner)).is_staff
        for wrong in ("", "x", token[:-1], token.replace(".", ""), f"{'0' * 26}.{token[27:]}", "é.ü"):
            with pytest.raises(NotFound):
                await preview_link(tx, wrong, door.owner)
    stored = await db.pool.fetchrow("select * from slack_links where token_hash = $1", token_hash(token))
    assert token not in str(dict(stored)), "only the hash is kept"
    await db.pool.execute(
        "update slack_links set expires_at = lastcall_now() where token_hash = $1", token_hash(token)
    )
    for act in (request_access, confirm_link):
        with pytest.raises(NotFound):
            await act(db, door.owner, token)


async def test_a_newer_link_of_the_same_sender_replaces_the_older(db: Database, workspace: Workspace) -> None:
    old, other, new = await workspace.link(), await workspace.link("U2"), await workspace.link()
    with pytest.raises(NotFound):
        await confirm_link(db, workspace.door.owner, old)
    await confirm_link(db, workspace.door.owner, new)
    await confirm_link(db, workspace.door.deputy, other)
    assert set(await workspace.linked()) == {"U1", "U2"}


async def test_the_same_signed_request_again_makes_no_second_link(db: Database, workspace: Workspace) -> None:
    token = await workspace.link(request="one")
    with pytest.raises(Conflict) as refused:
        await workspace.link(request="one")
    assert refused.value.code == "slack_answered"
    await confirm_link(db, workspace.door.owner, token)  # and the first one still works


async def test_the_bots_token_is_kept_encrypted_and_never_leaves_with_an_export(
    db: Database, workspace: Workspace, tmp_path: Path
) -> None:
    (token,) = workspace.double.tokens
    row = await workspace.row()
    assert token.encode() not in row["token_sealed"]
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert Vault(tmp_path).open(workspace.door.club_id, row["token_sealed"]) == token
    with pytest.raises(Unavailable):
        Vault(tmp_path).open(workspace.door.owner.person_id, row["token_sealed"])
    lines = [line async for line in export_club(db, workspace.door.owner, workspace.door.club_id)]
    assert "token_sealed" not in str(lines)
    assert "slack_installations" in str(lines)


async def test_a_state_counts_once_begun_by_this_person_in_this_browser(
    db: Database, door: Door, tmp_path: Path
) -> None:
    async with SlackDouble() as double:
        slack = app_of(double, tmp_path)
        state, code = await state_for(door, slack), double.code("T-state")
        for actor, given, browser in (
            (door.deputy, state, BROWSER),
            (door.owner, state, b"c" * 32),
            (door.owner, state[:-1] + ("0" if state[-1] != "0" else "1"), BROWSER),
            (door.owner, "", BROWSER),
        ):
            with pytest.raises(Invalid):
                await finish_install(db, slack, actor, code, given, browser)
        assert double.calls == [], "Slack is not even asked"
        with pytest.raises(NotFound):
            await finish_install(db, slack, door.owner, "made-up", state, BROWSER)
        await finish_install(db, slack, door.owner, code, state, BROWSER)
        slack.api.close()


async def test_a_workspace_belongs_to_one_club_and_is_free_once_that_lets_it_go(
    db: Database, workspace: Workspace, tmp_path: Path
) -> None:
    other = await open_door(db)
    with pytest.raises(Conflict) as refused:
        await connect(other, workspace.double, tmp_path, workspace.team_id)
    assert refused.value.code == "slack_team_taken"
    await remove_install(db, workspace.slack, workspace.door.owner, workspace.door.club_id)
    assert await workspace.row() is None
    taken = await connect(other, workspace.double, tmp_path, workspace.team_id)
    async with db.read() as tx:
        seen = await slack_of(tx, other.owner, other.club_id)
    assert seen is not None
    assert (seen.team_id, seen.linked, seen.is_linked) == (workspace.team_id, 0, False)
    assert len(workspace.double.tokens) == 2, (
        "the refused one's and the new one; the removed one was given back"
    )
    taken.slack.api.close()


async def test_news_that_the_app_was_taken_out_does_not_touch_a_newer_installation(
    db: Database, workspace: Workspace
) -> None:
    installed_at = (await workspace.row())["installed_at"]
    await team_removed(db, workspace.team_id, installed_at - timedelta(seconds=1))
    assert await workspace.row() is not None
    await team_removed(db, workspace.team_id, datetime.now(UTC) + timedelta(minutes=1))
    await team_removed(db, workspace.team_id, datetime.now(UTC) + timedelta(minutes=1))
    assert await workspace.row() is None


async def linked_owner(workspace: Workspace) -> SlackChannel:
    await confirm_link(workspace.door.db, workspace.door.owner, await workspace.link())
    return SlackChannel(workspace.slack, PUBLIC_URL)


async def test_the_channel_reaches_whoever_is_linked_and_says_it_as_text(
    db: Database, workspace: Workspace
) -> None:
    door, channel = workspace.door, await linked_owner(workspace)
    both = [door.owner.person_id, door.deputy.person_id]
    async with db.read() as tx:
        assert await channel.reaches(tx, door.club_id, both) == [door.owner.person_id]
    await channel.send(db, door.club_id, door.owner.person_id, "<!channel> & co", "/c/x/inbox")
    assert workspace.double.said == [("U1", f"&lt;!channel&gt; &amp; co\n{PUBLIC_URL}/c/x/inbox")]
    with pytest.raises(NotFound):
        await channel.send(db, door.club_id, door.deputy.person_id, "x", "/")
    for word, error in (("account_inactive", NotFound), ("ratelimited", Unavailable)):
        workspace.double.fails = [word]
        with pytest.raises(error):
            await channel.send(db, door.club_id, door.owner.person_id, "x", "/")


async def test_a_hanging_slack_holds_no_transaction_and_is_given_up(
    db: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, channel = workspace.door, await linked_owner(workspace)
    assert api_module.CALL_TIMEOUT < SEND_TIMEOUT
    workspace.double.answers.clear()
    sending = asyncio.create_task(channel.send(db, door.club_id, door.owner.person_id, "x", "/"))
    called = "chat.postMessage"
    await eventually(lambda: _is(called in workspace.double.calls), message="Slack was not asked")
    assert await _open_transactions(db) == 0
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    monkeypatch.setattr(api_module, "CALL_TIMEOUT", timedelta(seconds=0.2))
    with pytest.raises(Unavailable):
        await channel.send(db, door.club_id, door.owner.person_id, "x", "/")
    workspace.double.answers.set()


async def _is(what: bool) -> bool:
    return what


async def _open_transactions(db: Database) -> int:
    found: int = await db.pool.fetchval(
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and state like 'idle in transaction%'"
    )
    return found


async def test_whoever_asks_by_slack_and_holds_an_invite_has_one_request(
    db: Database, workspace: Workspace
) -> None:
    door = workspace.door
    await request_access(db, door.guest, await workspace.link())
    invite = await door.invite(approves=False)
    await accept_invite(db, door.guest, invite.token)
    assert len(await door.requests()) == 1
    stranger = await person(db, "stranger", verified=False)
    assert await request_access(db, stranger, await workspace.link("U3")) is Asked.PENDING
    rows: list[Any] = await door.requests()
    assert [row["email"] for row in rows if row["person_id"] == stranger.person_id] == [None]
