"""What tests of providers share: a provider on loopback, the settings that name it, and fresh limits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from tests.people.journeys import PUBLIC
from tests.people.openid_provider import OpenIdProvider, openid_provider

from lastcall.clock import SYSTEM_CLOCK
from lastcall.db.database import Database
from lastcall.people.providers.providers import Providers, providers_from


@pytest.fixture
async def provider() -> AsyncIterator[OpenIdProvider]:
    async with openid_provider(subject=uuid4().hex) as provider:
        yield provider


@pytest.fixture
def providers(provider: OpenIdProvider) -> Providers:
    return providers_from([provider.settings()], PUBLIC, SYSTEM_CLOCK)


@pytest.fixture
async def fresh_limits(database: Database) -> None:
    """The tests of a module share a database and a source; each begins with what the source may."""
    await database.pool.execute("delete from rate_limits")
