"""A club whose Slack is connected to the double, and senders there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.access.conftest import Door, fresh

from lastcall.access.slack.api import SlackApi
from lastcall.access.slack.installing import Slack, begin_install, finish_install
from lastcall.access.slack.linking import Issued, issue_link
from lastcall.access.slack.vault import Vault
from lastcall.people.actor import Actor
from lastcall.people.tokens import token_hash
from lastcall.testing.slack import CLIENT_ID, SlackDouble

BROWSER = b"b" * 32
PUBLIC_URL = "https://lastcall.club.example"


@dataclass
class Workspace:
    """The workspace of a club, as its people use it."""

    door: Door
    double: SlackDouble
    slack: Slack
    team_id: str

    async def link(self, user: str = "U1", request: str | None = None) -> str:
        """The token of a link that somebody in Slack was given."""
        answer = await issue_link(
            self.door.db, self.team_id, user, user.lower(), token_hash(request or fresh())
        )
        assert isinstance(answer, Issued)
        return answer.token

    async def linked(self) -> dict[str, Any]:
        rows = await self.door.db.pool.fetch(
            "select slack_user_id, person_id from slack_people where club_id = $1", self.door.club_id
        )
        return {row["slack_user_id"]: row["person_id"] for row in rows}

    async def row(self) -> Any:
        return await self.door.db.pool.fetchrow(
            "select * from slack_installations where club_id = $1", self.door.club_id
        )


def app_of(double: SlackDouble, home: Path) -> Slack:
    api = SlackApi(CLIENT_ID, double.client_secret, double.signing_secret, double.url)
    return Slack(api, Vault(home), f"{PUBLIC_URL}/slack/installed")


async def state_for(door: Door, slack: Slack, actor: Actor | None = None) -> str:
    """What Slack is asked to send back with whoever connects a workspace."""
    role = door.roles["event_staff"]
    address = await begin_install(door.db, slack, actor or door.owner, door.club_id, role, BROWSER)
    return parse_qs(urlsplit(address).query)["state"][0]


async def connect(door: Door, double: SlackDouble, home: Path, team_id: str | None = None) -> Workspace:
    slack = app_of(double, home)
    team = team_id or f"T{fresh()}"
    state = await state_for(door, slack)
    await finish_install(door.db, slack, door.owner, double.code(team), state, BROWSER)
    return Workspace(door, double, slack, team)
