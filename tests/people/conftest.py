"""A database that the tests of one module share, each with people of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lastcall.testing.database import TestServer


@pytest.fixture(scope="module")
def shared_database_url(
    request: pytest.FixtureRequest, postgres_servers: Callable[[Path | None], TestServer]
) -> Iterator[str]:
    """A migrated database for a whole module: return it from a fixture ``database_url`` of the module's own."""
    server = postgres_servers(None)
    name = f"shared_{request.module.__name__.rsplit('.', 1)[-1]}"
    loop = asyncio.new_event_loop()
    yield loop.run_until_complete(server.create(name))
    loop.run_until_complete(server.drop(name))
    loop.close()
