"""``/ops/``: for programs that watch over the server, with an operator's API token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from litestar import Response, Router, get
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from prometheus_client import CONTENT_TYPE_LATEST

from lastcall.api.ops.awake import Awake, next_wake
from lastcall.api.ops.figures import figures
from lastcall.api.problems import problem
from lastcall.api.v1.requests import caller
from lastcall.db.database import Database
from lastcall.deadlines.scheduler import Scheduler
from lastcall.errors import NotAllowed
from lastcall.people.actor import Actor, require_operator

_NOT_KEPT = {"Cache-Control": "no-store"}


@dataclass(frozen=True)
class Ops:
    """What these routes answer from."""

    database: Database
    scheduler: Scheduler
    awake: Sequence[Awake]


def ops_routes(ops: Ops) -> Router:
    """What the application mounts."""

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        if connection.scope.get("method") == "OPTIONS":
            return
        actor = await caller(ops.database, connection.headers.get("authorization", ""))
        if not isinstance(actor, Actor):
            raise NotAllowed("operators_only", "Only an operator may do this.", advice="Ask an operator.")
        require_operator(actor)

    @get("/next-wake")
    async def answer_next_wake() -> Response[bytes]:
        """The earliest deadline of this process and its owner, and what keeps the host from sleeping now (SCH-09)."""
        body = msgspec.json.encode(next_wake(ops.scheduler, ops.awake))
        return Response(body, media_type="application/json", headers=_NOT_KEPT)

    @get("/metrics")
    async def answer_metrics() -> Response[bytes]:
        """What the deadline owners of this process did, for Prometheus."""
        body = figures(ops.scheduler.status(), ops.awake, ops.database.statements)
        return Response(body, media_type=CONTENT_TYPE_LATEST, headers=_NOT_KEPT)

    return Router(
        path="/ops",
        route_handlers=[answer_next_wake, answer_metrics],
        guards=[guard],
        exception_handlers={Exception: problem},
    )
