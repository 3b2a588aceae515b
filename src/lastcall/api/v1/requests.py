"""What a call may look like before any service sees it: whose it is, what it may send and be answered."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any, TypeVar, cast

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures.headers import Accept
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler

from lastcall.access.agents.keys import PREFIX as AGENT_PREFIX
from lastcall.access.agents.keys import actor_of_key
from lastcall.access.agents.policy import key_refused
from lastcall.api.problems import said
from lastcall.db.database import Database
from lastcall.db.limits import Limit, take
from lastcall.errors import Invalid, NotSignedIn, WrongRequest
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.api_tokens import actor_of_token
from lastcall.people.holding import token_refused

PUBLIC = {"is_public": True}
"""The declaration of a route that needs no token."""

FOR_AGENTS = {"is_for_agents": True}
"""The declaration of a route that takes an agent's key, and nothing of people's."""

CALLS = Limit("api", 600, per=timedelta(minutes=1))
"""Of one token or key. Only those that are good count: an unknown one costs a look-up and is nobody's."""

BODY_BYTES_MOST = 262_144
"""A hundred reviewed actions are far below it."""

_JSON = "application/json"
_PLACE = re.compile(r" - at `\$\.?(?P<place>.*)`$", re.DOTALL)
_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<name>.*)`", re.DOTALL)

Body = TypeVar("Body")
ApiConnection = ASGIConnection[Any, Any, Any, Any]


class ApiRequest(Request[Any, Any, Any]):
    """A call whose JSON is read strictly: exactly the fields of the route's body, each of its own type."""

    async def json(self) -> Any:
        if self.content_type[0].lower() != _JSON:
            raise WrongRequest(
                "not_json",
                "The body must be JSON, and its Content-Type must say so.",
                status=415,
                advice=f"Send it with Content-Type: {_JSON}.",
                headers={"Accept": _JSON},
            )
        field = self.route_handler.parsed_data_field
        return read_body(await self.body(), field.annotation if field else object)


async def guard(connection: ApiConnection, handler: BaseRouteHandler) -> None:
    """Let a call in or raise; leaves the ``Actor``, on an agents' route the ``AgentActor``, in its state.

    A cookie is no identity here: a browser sends it along with what another site made it send.
    """
    if connection.scope.get("method") == "OPTIONS":
        return  # The framework's own answer to it names the methods of the address, and nothing else.
    _check_accept(connection, handler)
    if handler.opt.get("is_public"):
        return
    actor = await caller(connection.app.state.database, connection.headers.get("authorization", ""))
    _check_query(connection)
    is_agent = isinstance(actor, AgentActor)
    if is_agent is not bool(handler.opt.get("is_for_agents")):
        raise _agents_route() if not is_agent else _peoples_route()
    connection.state.actor = actor


async def caller(database: Database, authorization: str) -> Actor | AgentActor:
    """Who calls, by the Authorization header alone: a person's token or an agent's key. Raises ``NotSignedIn``, and
    ``TooFast``.
    """
    token = _token(authorization)
    actor: Actor | AgentActor | None
    if token.startswith(AGENT_PREFIX):
        actor = await actor_of_key(database, token)
        refused = key_refused
    else:
        actor = await actor_of_token(database, token)
        refused = token_refused
    if actor is None:
        raise refused()
    await take(database, CALLS, token)
    return actor


def agent_caller(request: Request[Any, Any, Any]) -> AgentActor:
    """The agent whose key came with this call: the dependency ``agent`` of routes with ``opt=FOR_AGENTS``."""
    return cast("AgentActor", request.state.actor)


def _agents_route() -> NotSignedIn:
    return NotSignedIn(
        "agent_key_missing",
        "This address takes an agent's key, and this is a person's API token.",
        advice="Send the key that the agent claimed, as Authorization: Bearer lca_….",
    )


def _peoples_route() -> NotSignedIn:
    return NotSignedIn(
        "token_missing",
        "This address takes a person's API token, and this is an agent's key.",
        advice="An agent's own addresses begin with /api/v1/agent.",
    )


def _token(authorization: str) -> str:
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotSignedIn(
            "token_missing",
            "This call carries neither an API token nor an agent's key.",
            advice="Send it as Authorization: Bearer lc_…; a token is made on your account page. An agent sends the"
            " key that it claimed, lca_….",
        )
    return token.strip()


def _check_accept(connection: ApiConnection, handler: BaseRouteHandler) -> None:
    asked = connection.headers.get("accept")
    if not asked or not isinstance(handler, HTTPRouteHandler):
        return
    form = str(getattr(handler.media_type, "value", handler.media_type) or _JSON)
    if Accept(asked).best_match([form, "application/problem+json"]) is None:
        raise WrongRequest(
            "not_acceptable",
            f"This is answered as {form} only, which the Accept header rules out.",
            status=406,
            advice="Leave the Accept header out.",
        )


def _check_query(connection: ApiConnection) -> None:
    for name, value in connection.query_params.multi_items():
        if "\0" in name or "\0" in str(value):
            raise _zero(name.replace("\0", ""))


def read_body(body: bytes, kind: type[Body], what: str = "The body is") -> Body:
    """The body as ``kind``; ``Invalid`` names the field that does not fit. ``what`` begins its sentence.

    Two fields of one name are refused: readers disagree about which of them counts. So is a zero character,
    which no text in the database can hold.
    """
    try:
        read = msgspec.json.decode(body, type=kind)
        _walk(json.loads(body, object_pairs_hook=_once), "")
    except msgspec.ValidationError as error:
        raise _unfit(str(error), what) from error
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise Invalid(
            "malformed_request", f"{what} not a JSON object.", advice="Check it with a JSON reader."
        ) from error
    return read


def _unfit(text: str, what: str) -> Invalid:
    found, unknown = _PLACE.search(text), _UNKNOWN_FIELD.search(text)
    place = found["place"] if found else ""
    if unknown:
        place = ".".join(part for part in (place, unknown["name"]) if part)
    named = f" in “{place}”" if place else ""
    return Invalid(
        "malformed_request",
        f"{what} not right{named}: {said(text)}.",
        advice="The API's description says what each field takes.",
        field=place or None,
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise Invalid(
                "field_repeated",
                f"The field “{name}” comes twice.",
                advice="Send it once.",
                field=name,
            )
        found[name] = value
    return found


def _walk(value: Any, place: str) -> None:
    match value:
        case str() if "\0" in value:
            raise _zero(place)
        case dict():
            for name, inner in value.items():
                _walk(name, place)
                _walk(inner, f"{place}.{name}".lstrip("."))
        case list():
            for number, inner in enumerate(value):
                _walk(inner, f"{place}.{number}".lstrip("."))


def _zero(field: str) -> Invalid:
    return Invalid(
        "zero_character", "Text cannot hold a zero character.", advice="Remove it.", field=field or None
    )
