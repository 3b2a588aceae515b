"""Errors as the API says them: RFC 9457 problem documents. The one mapping from the family's errors to
answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import asyncpg
import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException

from lastcall.errors import (
    Conflict,
    DatabaseAway,
    Disabled,
    Invalid,
    LastcallError,
    NotFound,
    NotSignedIn,
    TooFast,
    Unavailable,
    WrongRequest,
)

MEDIA_TYPE = "application/problem+json"

log = structlog.get_logger()

_AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # of a connection whose end the driver had not yet seen
    asyncpg.AdminShutdownError,
    ConnectionError,
)
_DEPARTED = "client disconnected prematurely"
"""How the framework says that the client left in the middle of a body; it has no type of its own for it."""
_BUSY = (asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError, asyncpg.DeadlockDetectedError)


def as_family(error: Exception) -> LastcallError:
    """Any exception as one of ours. What nobody expected is logged, and told without its details."""
    if isinstance(error, DatabaseAway):
        log.warning("database_away", code=error.code, reason=error.sentence, advice=error.advice)
        return _lost()
    if isinstance(error, LastcallError):
        return error
    if isinstance(error, HTTPException):
        return _framework_error(error)
    trouble = database_trouble(error)
    if trouble is not None:
        return trouble
    log.error("request_failed", exc_info=error)
    return LastcallError(
        "unexpected",
        "Something went wrong on the server.",
        advice="Try again; the server's log has the details.",
    )


def database_trouble(error: Exception) -> Unavailable | None:
    """An error of the driver that a later try may not meet; ``None`` for all others."""
    causes = list(_causes(error))
    if any(isinstance(cause, _AWAY) for cause in causes):
        return _lost()
    if any(isinstance(cause, _BUSY) for cause in causes):
        return Unavailable(
            "database_busy",
            "Somebody else is changing the same thing right now.",
            advice="Try again in a moment.",
        )
    return None


def _lost() -> Unavailable:
    return Unavailable(
        "database_lost", "The connection to the database was lost.", advice="Try again in a moment."
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it was raised from: SQLAlchemy wraps the driver's."""
    while error is not None:
        yield error
        error = error.__cause__


def _framework_error(error: HTTPException) -> LastcallError:
    """What the framework raises before our code is reached: an unknown address, a wrong method, a bad
    body.
    """
    match error.status_code:
        case HTTPStatus.NOT_FOUND:
            return NotFound("not_found", "There is no such page.")
        case HTTPStatus.METHOD_NOT_ALLOWED:
            allowed = (error.headers or {}).get("allow", "")
            return WrongRequest(
                "method_not_allowed",
                "This address does not take such a request.",
                status=error.status_code,
                headers={"Allow": _with_head(allowed)},
            )
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return WrongRequest(
                "body_too_large",
                "The request is larger than this address takes.",
                status=error.status_code,
                advice="Send less at once.",
            )
        case HTTPStatus.SERVICE_UNAVAILABLE:
            return Unavailable(
                "unavailable", "The server is not available right now.", advice="Try again shortly."
            )
    if HTTPStatus.BAD_REQUEST <= error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
        return _unreadable(error)
    if error.detail == _DEPARTED:
        return Invalid("request_cut_off", "The request ended before its body did.", advice="Send it again.")
    log.error("request_failed", exc_info=error)
    return LastcallError("unexpected", "Something went wrong on the server.")


def _with_head(allowed: str) -> str:
    """The methods an address takes. HEAD is answered wherever GET is, by ``HeadAnswers``."""
    methods = {method.strip() for method in allowed.split(",") if method.strip()}
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


def _unreadable(error: HTTPException) -> Invalid:
    """A parameter or body that does not fit. The framework's own text repeats the whole address, so only
    what it says of the single parameter is passed on.
    """
    found = error.extra if isinstance(error.extra, list) else []
    named = [
        (str(each["key"]), str(each["message"])) for each in found if "key" in each and "message" in each
    ]
    if not named:
        return Invalid("malformed_request", "The request cannot be read.", advice=str(error.detail)[:200])
    if named[0][0] == "data":
        return Invalid("body_missing", "This needs a body.", advice="Send a JSON object.")
    refused = Invalid(
        "malformed_request",
        f"“{named[0][0]}” is not right: {said(named[0][1])}.",
        advice="Correct it and send the request again.",
        field=named[0][0],
    )
    refused.others = [(name, said(message)) for name, message in named[1:]]
    return refused


def said(message: str) -> str:
    """What the decoder says of a value, as a part of a sentence."""
    text = message.partition(" - at `")[0].replace("`", "").strip().rstrip(".")
    return text[:1].lower() + text[1:]


def problem(
    _: Request[Any, Any, Any], exception: Exception, rendered: Callable[[Any], Any] | None = None
) -> Response[bytes]:
    """An exception as a problem document, for every path that programs call. ``rendered`` makes of a
    conflict's fresh row what its reader gets elsewhere too.
    """
    error = as_family(exception)
    return Response(
        msgspec.json.encode(problem_document(error, rendered)),
        status_code=error.status,
        media_type=MEDIA_TYPE,
        headers=_headers(error),
    )


def problem_document(error: LastcallError, rendered: Callable[[Any], Any] | None = None) -> dict[str, Any]:
    """What stands in the document."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.sentence,
        "code": error.code,
    }
    if error.advice:
        body["advice"] = error.advice
    if error.field:
        body["field"] = camel(error.field)
        others = error.others if isinstance(error, Invalid) else ()
        body["errors"] = [
            {"field": camel(field), "detail": text}
            for field, text in ((error.field, error.sentence), *others)
        ]
    if isinstance(error, Conflict) and error.fresh is not None:
        body["fresh"] = msgspec.to_builtins((rendered or _as_it_is)(error.fresh), str_keys=True)
    return body


def camel(field: str) -> str:
    """A field as the API spells it: services name theirs as Python does."""
    first, *rest = field.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _as_it_is(fresh: Any) -> Any:
    return fresh


def _headers(error: LastcallError) -> dict[str, str]:
    headers = {"Cache-Control": "no-store"}
    if isinstance(error, WrongRequest):
        headers |= error.headers
    if isinstance(error, NotSignedIn):
        headers["WWW-Authenticate"] = "Bearer"
    return headers | retry_after(error)


def retry_after(error: LastcallError) -> dict[str, str]:
    """The header that says when to try again, in whole seconds, where that is known."""
    if isinstance(error, TooFast | Disabled) and error.retry_after is not None:
        return {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
    return {}
