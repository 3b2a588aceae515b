"""The routes put together: what the application mounts."""

from __future__ import annotations

from typing import Any, cast

from litestar import Request, Response, Router, get
from litestar.di import Provide

from lastcall.api.problems import problem
from lastcall.api.v1.description import description
from lastcall.api.v1.fresh import rendered
from lastcall.api.v1.requests import BODY_BYTES_MOST, PUBLIC, ApiRequest, agent_caller, guard
from lastcall.api.v1.routes import HANDLERS
from lastcall.db.database import Database
from lastcall.mail.mailer import Mailer
from lastcall.people.actor import Actor

PATH = "/api/v1"


def api_routes() -> Router:
    """What the application mounts. It finds the database and the mailer in the application's state."""
    return Router(
        path=PATH,
        route_handlers=[*HANDLERS, openapi],
        guards=[guard],
        exception_handlers={Exception: api_problem},
        request_class=ApiRequest,
        request_max_body_size=BODY_BYTES_MOST,
        dependencies={
            "db": Provide(_database, sync_to_thread=False),
            "actor": Provide(_actor, sync_to_thread=False),
            "agent": Provide(agent_caller, sync_to_thread=False),
            "mailer": Provide(_mailer, sync_to_thread=False),
        },
        after_request=_keep_nowhere,
    )


def _database(request: Request[Any, Any, Any]) -> Database:
    return cast("Database", request.app.state.database)


def _actor(request: Request[Any, Any, Any]) -> Actor:
    return cast("Actor", request.state.actor)


def _mailer(request: Request[Any, Any, Any]) -> Mailer:
    return cast("Mailer", request.app.state.mailer)


def _keep_nowhere(response: Response[Any]) -> Response[Any]:
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def api_problem(request: Request[Any, Any, Any], exception: Exception) -> Response[bytes]:
    return problem(request, exception, rendered)


@get("/openapi.json", opt=PUBLIC, include_in_schema=False)
async def openapi() -> dict[str, Any]:
    """The API's own description (OpenAPI 3.1)."""
    return description(api_routes())
