"""Errors as the API says them: RFC 9457 problem documents. The one mapping from the family's errors to
answers.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    TooFast,
    Unavailable,
)

MEDIA_TYPE = "application/problem+json"

log = structlog.get_logger()

_AWAY = (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.AdminShutdownError, ConnectionError)
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
    causes = list(_causes(error))
    if any(isinstance(cause, _AWAY) for cause in causes):
        return _lost()
    if any(isinstance(cause, _BUSY) for cause in causes):
        return Unavailable(
            "database_busy",
            "Somebody else is changing the same thing right now.",
            advice="Try again in a moment.",
        )
    log.error("request_failed", exc_info=error)
    return LastcallError(
        "unexpected",
        "Something went wrong on the server.",
        advice="Try again; the server's log has the details.",
    )


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
    status = error.status_code
    if status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}:
        return NotFound("not_found", "There is no such page.")
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return Unavailable(
            "unavailable", "The server is not available right now.", advice="Try again shortly."
        )
    if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return Invalid("malformed_request", "The request cannot be read.", advice=str(error.detail))
    if error.detail == _DEPARTED:
        return Invalid("request_cut_off", "The request ended before its body did.", advice="Send it again.")
    log.error("request_failed", exc_info=error)
    return LastcallError("unexpected", "Something went wrong on the server.")


def problem(_: Request[Any, Any, Any], exception: Exception) -> Response[bytes]:
    """An exception as a problem document, for every path that programs call."""
    error = as_family(exception)
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
        body["field"] = error.field
    if isinstance(error, Conflict) and error.fresh is not None:
        body["fresh"] = msgspec.to_builtins(error.fresh, str_keys=True)
    headers = {"Cache-Control": "no-store"}
    if isinstance(error, TooFast | Disabled) and error.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    return Response(
        msgspec.json.encode(body), status_code=error.status, media_type=MEDIA_TYPE, headers=headers
    )
