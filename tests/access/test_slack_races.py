"""At once: two who ask, two who use one link, a link that is replaced or taken out, each with its twin."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.access.conftest import Door
from tests.access.slack_kit import Workspace, connect

from lastcall.access.slack import linking
from lastcall.access.slack.installing import remove_install
from lastcall.access.slack.linking import Asked, confirm_link, request_access
from lastcall.db.database import Database
from lastcall.errors import Conflict, NotFound
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.slack import SlackDouble


@pytest.fixture
async def workspace(door: Door, tmp_path: Path) -> AsyncIterator[Workspace]:
    async with SlackDouble() as double:
        found = await connect(door, double, tmp_path)
        yield found
        found.slack.api.close()


async def nothing(*_: object) -> None:
    return None


class Held:
    """Stops the first who passes the named step, with the pid of its connection, until told to go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        self.go_on, self.reached, self.pid = asyncio.Event(), asyncio.Event(), 0
        inner = getattr(linking, step)

        async def held(tx: Any, *args: Any, **kwargs: Any) -> Any:
            answer = await inner(tx, *args, **kwargs)
            if not self.reached.is_set():
                self.pid = tx.raw.get_server_pid()
                self.reached.set()
                await self.go_on.wait()
            return answer

        monkeypatch.setattr(linking, step, held)


async def ask_twice(
    db: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, waits_on: str
) -> list[Any]:
    """The same person by two links; the second is seen waiting for the first."""
    guest = workspace.door.guest
    tokens = [await workspace.link("U1"), await workspace.link("U2")]
    held = Held(monkeypatch, "_make_invite")
    first = asyncio.create_task(request_access(db, guest, tokens[0]))
    await held.reached.wait()
    second = asyncio.create_task(request_access(db, guest, tokens[1]))
    if waits_on == "advisory":
        await wait_until_blocked(db, "pg_advisory_xact_lock", by=held.pid)
        held.go_on.set()
    else:
        await asyncio.wait([second], timeout=20)
        held.go_on.set()
    return await asyncio.gather(first, second, return_exceptions=True)


@pytest.mark.clause("ACC-05")
async def test_of_two_requests_at_once_the_second_waits_and_finds_the_first(
    db: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await ask_twice(db, workspace, monkeypatch, "advisory") == [Asked.PENDING, Asked.PENDING]
    assert len(await workspace.door.requests()) == 1


async def test_twin_without_the_turn_one_of_two_is_refused_by_the_schema(
    db: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "take_turn", nothing)
    outcomes = await ask_twice(db, workspace, monkeypatch, "nothing")
    refused = [one for one in outcomes if isinstance(one, Conflict)]
    assert [one.code for one in refused] == ["request_pending"], "where it should be told that it waits"


async def use_twice(db: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, query: str) -> Any:
    """Two people of the staff use one link; the second is seen waiting for the first."""
    door, token = workspace.door, await workspace.link()
    held = Held(monkeypatch, "log")
    first = asyncio.create_task(confirm_link(db, door.owner, token))
    await held.reached.wait()
    second = asyncio.create_task(confirm_link(db, door.deputy, token))
    await wait_until_blocked(db, query, by=held.pid)
    held.go_on.set()
    _, outcome = await asyncio.gather(first, second, return_exceptions=True)
    assert await workspace.linked() == {"U1": door.owner.person_id}
    return outcome


async def test_a_link_links_one_of_two_people_and_is_used_up_for_the_other(
    db: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(await use_twice(db, workspace, monkeypatch, "slack_links"), NotFound)


async def test_twin_without_the_links_lock_only_the_schema_stops_the_second(
    db: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "lock_link", nothing)
    outcome = await use_twice(db, workspace, monkeypatch, "insert into slack_people")
    assert isinstance(outcome, Conflict), "it took a used link for an open one"


async def confirm_while_replaced(db: Database, workspace: Workspace, query: str) -> Any:
    """The sender asks for a newer link while somebody confirms the older one."""
    door, token = workspace.door, await workspace.link()
    async with db.transaction() as tx:
        await tx.raw.execute(
            "update slack_links set revoked_at = lastcall_now() where club_id = $1", door.club_id
        )
        confirming = asyncio.create_task(confirm_link(db, door.owner, token))
        await wait_until_blocked(db, query, by=tx.raw.get_server_pid())
    (outcome,) = await asyncio.gather(confirming, return_exceptions=True)
    return outcome


async def test_a_confirmation_that_waited_for_a_revocation_links_nobody(
    db: Database, workspace: Workspace
) -> None:
    assert isinstance(await confirm_while_replaced(db, workspace, "for update"), NotFound)
    assert await workspace.linked() == {}


async def test_twin_without_the_links_lock_a_revoked_link_links_somebody(
    db: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "lock_link", nothing)
    assert await confirm_while_replaced(db, workspace, "update slack_links") is None
    assert await workspace.linked() == {"U1": workspace.door.owner.person_id}


async def test_a_confirmation_and_taking_the_app_out_wait_for_each_other_without_a_deadlock(
    db: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, token = workspace.door, await workspace.link()
    held = Held(monkeypatch, "_hold_workspace")
    confirming = asyncio.create_task(confirm_link(db, door.owner, token))
    await held.reached.wait()
    removing = asyncio.create_task(remove_install(db, workspace.slack, door.owner, door.club_id))
    await wait_until_blocked(db, "delete from slack_installations", by=held.pid)
    held.go_on.set()
    assert await asyncio.gather(confirming, removing) == [None, None]
    assert (await workspace.row(), await workspace.linked()) == (None, {})
    with pytest.raises(NotFound):
        await confirm_link(db, door.owner, token)
