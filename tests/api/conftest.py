"""The worker API behind a real server on a loopback port, and a collector's side of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
import uvicorn
from litestar import Litestar
from tests.connections.conftest import Site, build_site

from lastcall.api.problems import problem
from lastcall.api.worker.routes import worker_routes
from lastcall.api.worker.services import WorkerServices
from lastcall.connections.keys import KeyRing
from lastcall.connections.work import WorkBoard
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.operations.services.worker import WorkerSteps
from lastcall.reads.worker import ReadSteps
from lastcall.testing.waiting import eventually


@dataclass
class Caller:
    """Sends worker calls as a collector of the site does; ``headers`` and ``body`` replace or remove parts."""

    client: httpx2.AsyncClient
    site: Site
    worker_id: str = field(default_factory=lambda: encode_id(new_id()))

    async def __call__(
        self,
        call: str,
        *,
        headers: dict[str, str | None] | None = None,
        raw: bytes | None = None,
        **body: Any,
    ) -> httpx2.Response:
        sent = {
            "Authorization": f"Bearer {self.site.account.key}",
            "Lastcall-Account": encode_id(self.site.account.account_id),
            "Lastcall-Protocol": "2",
            **(headers or {}),
        }
        content = {"workerId": self.worker_id, "vrchatUserId": "usr_1", **body}
        content = {name: value for name, value in content.items() if value is not ...}
        return await self.client.post(
            f"/worker/v1/{call}",
            headers={name: value for name, value in sent.items() if value is not None},
            **({"content": raw} if raw is not None else {"json": content}),
        )

    async def lease(self) -> dict[str, Any]:
        """Take the lease; answers the reference that later calls carry."""
        key = {
            "clubId": encode_id(self.site.club_id),
            "connectionId": encode_id(self.site.connection_id),
        }
        answer = await self("lease", **key)
        assert answer.status_code == 200, answer.text
        given = answer.json()
        return {**key, "epoch": given["epoch"], "fencingToken": given["fencingToken"]}


@pytest.fixture
async def site(database: Database) -> Site:
    return await build_site(database)


@pytest.fixture
def services(site: Site) -> WorkerServices:
    return WorkerServices(
        db=site.db,
        keys=KeyRing(site.db),
        board=WorkBoard(site.db, []),
        steps=WorkerSteps(site.db),
        reads=ReadSteps(site.db),
    )


@pytest.fixture
async def server(services: WorkerServices) -> AsyncIterator[str]:
    app = Litestar(
        worker_routes(services),
        exception_handlers={Exception: problem},
        openapi_config=None,
        logging_config=None,
    )
    listening = socket.create_server(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", ws="none"))
    running.capture_signals = contextlib.nullcontext  # type: ignore[method-assign] - not the test process's
    serving = asyncio.create_task(running.serve(sockets=[listening]))
    await eventually(lambda: running.started)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    services.board.stop()
    running.should_exit = True
    await serving


@pytest.fixture
async def caller(server: str, site: Site) -> AsyncIterator[Caller]:
    async with httpx2.AsyncClient(base_url=server, trust_env=False, timeout=30) as client:
        yield Caller(client, site)
