"""Messages to people of a club by its Slack; ``app.py`` registers it with what tells people things."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import select

from lastcall.access.slack.installing import Slack
from lastcall.access.slack.tables import SlackInstallation, SlackPerson
from lastcall.db.database import Database
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound


class SlackChannel:
    """Reaches whoever linked their account in the club's workspace."""

    name = "slack"

    def __init__(self, slack: Slack, public_url: str) -> None:
        self._slack = slack
        self._public_url = public_url.rstrip("/")

    async def reaches(self, tx: Reader, club_id: UUID, person_ids: Collection[UUID]) -> Collection[UUID]:
        """Those of these people who are linked."""
        found = await tx.execute(
            select(SlackPerson.person_id).where(
                SlackPerson.club_id == club_id, SlackPerson.person_id.in_(person_ids)
            )
        )
        return list(found.scalars())

    async def send(self, db: Database, club_id: UUID, person_id: UUID, text: str, path: str) -> None:
        """Send a direct message. ``NotFound`` for somebody who is not linked any more or whom Slack does not reach.

        What it needs is read first: no transaction is open while Slack is asked.
        """
        async with db.read() as tx:
            found = await tx.execute(
                select(SlackInstallation.token_sealed, SlackPerson.slack_user_id)
                .join(SlackPerson, SlackPerson.club_id == SlackInstallation.club_id)
                .where(SlackInstallation.club_id == club_id, SlackPerson.person_id == person_id)
            )
            row = found.one_or_none()
        if row is None:
            raise NotFound("slack_unlinked", "This person is not linked in Slack any more.")
        token = self._slack.vault.open(club_id, row.token_sealed)
        await self._slack.api.say(token, row.slack_user_id, f"{escaped(text)}\n{self._public_url}{path}")


def escaped(text: str) -> str:
    """The text so that Slack shows it as it is: nothing in it is a link, a mention or a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
