"""What Slack sends: commands that people type there, and that an app was taken out. Signed, or refused unread."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import msgspec
from litestar import Request, Response, Router, post
from litestar.di import NamedDependency, Provide
from litestar.types import ControllerRouterHandler

from lastcall.access.limits import SLACK_COMMANDS
from lastcall.access.slack.installing import Slack, team_removed
from lastcall.access.slack.linking import Issued, issue_link
from lastcall.db.database import Database
from lastcall.db.limits import take
from lastcall.errors import Invalid, LastcallError, NotSignedIn

BODY_BYTES_MOST = 64 * 1024
ID_LENGTH = 64  # characters of Slack's ids; its own are a fifth of that
GONE = frozenset({"app_uninstalled", "tokens_revoked"})

SlackRequest = Request[Any, Any, Any]


class Event(msgspec.Struct):
    type: str


class Call(msgspec.Struct):
    """What Slack calls an event with; ``event_time`` in seconds since 1970."""

    type: str
    challenge: str = ""
    team_id: str = ""
    event_time: int = 0
    event: Event | None = None


def slack_routes(slack: Slack | None, db: Database, public_url: str) -> list[ControllerRouterHandler]:
    """The routes to mount; none without an app."""
    if slack is None:
        return []
    return [
        Router(
            path="/slack",
            route_handlers=[command, event],
            dependencies={
                "slack": Provide(lambda: slack, sync_to_thread=False),
                "db": Provide(lambda: db, sync_to_thread=False),
                "public_url": Provide(lambda: public_url.rstrip("/"), sync_to_thread=False),
            },
            request_max_body_size=BODY_BYTES_MOST,
            include_in_schema=False,
        )
    ]


@post("/commands", status_code=200)
async def command(
    request: SlackRequest,
    slack: NamedDependency[Slack],
    db: NamedDependency[Database],
    public_url: NamedDependency[str],
) -> Response[dict[str, str]]:
    """Whatever is typed behind the command: who the sender is here, or a link that only they see."""
    body = await _signed(request, slack)
    given = {key: values[0] for key, values in parse_qs(body.decode()).items()}
    team, user = given.get("team_id", ""), given.get("user_id", "")
    if not (_is_id(team) and _is_id(user)):
        raise Invalid("slack_sender_missing", "The command names no sender.", field="user_id")
    # The signature stands for the time and the body that it signs.
    signature = hashlib.sha256(request.headers["x-slack-signature"].encode()).digest()
    try:
        await take(db, SLACK_COMMANDS, f"{team} {user}")
        answer = await issue_link(db, team, user, _shown(given.get("user_name", "")), signature)
    except LastcallError as error:
        return _private(f"{error.sentence} {error.advice}")
    if isinstance(answer, Issued):
        return _private(
            f"Open this link to say who you are at {answer.club_name}, or to ask to be let in. It is for you alone and"
            f" works for a day: {public_url}/slack/connect/{answer.token}"
        )
    return _private(f"You are linked at {answer.club_name}: {public_url}/c/{answer.club_slug}/inbox")


@post("/events", status_code=200)
async def event(
    request: SlackRequest, slack: NamedDependency[Slack], db: NamedDependency[Database]
) -> Response[dict[str, str]]:
    """Slack's test of this address, and that an app was taken out of a workspace."""
    body = await _signed(request, slack)
    try:
        call = msgspec.json.decode(body, type=Call)
        at = datetime.fromtimestamp(call.event_time, UTC)
    except (msgspec.MsgspecError, ValueError, OverflowError, OSError) as error:
        raise Invalid("slack_event_malformed", "This is no event as Slack sends them.") from error
    if call.type == "url_verification":
        return Response({"challenge": call.challenge})
    if call.event is not None and call.event.type in GONE and _is_id(call.team_id):
        await team_removed(db, call.team_id, at)
    return Response({})


async def _signed(request: SlackRequest, slack: Slack) -> bytes:
    body = await request.body()
    if not slack.api.is_signed(body, request.headers):
        raise NotSignedIn(
            "slack_signature_wrong",
            "This is not signed by Slack, or too long ago.",
            advice="Check the setting slack_signing_secret, and this computer's clock.",
        )
    return body


def _is_id(text: str) -> bool:
    return 0 < len(text) <= ID_LENGTH and text.isascii() and text.isalnum()


def _shown(name: str) -> str:
    return "".join(letter for letter in name if letter.isprintable())


def _private(text: str) -> Response[dict[str, str]]:
    """An answer that only the sender sees."""
    return Response({"response_type": "ephemeral", "text": text}, headers={"cache-control": "no-store"})
