"""One stage for all tests of a file."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.hostile.stage import Stage, open_stage


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing_stage(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(shared_url, tmp_path_factory.mktemp("stage")) as stage:
        yield stage


@pytest_asyncio.fixture(loop_scope="module")
async def stage(standing_stage: Stage) -> AsyncIterator[Stage]:
    """The stage, empty, at a moment of the minute in which requests are granted."""
    await standing_stage.granting()
    yield standing_stage
    await standing_stage.clear()
