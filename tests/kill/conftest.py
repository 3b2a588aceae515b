"""One house for all tests that kill: what one test leaves behind, the next one finds running."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from kill_house import House


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing_house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    folder: Path = tmp_path_factory.mktemp("house")
    house = House(folder)
    await house.set_up()
    yield house
    await house.tear_down()


@pytest_asyncio.fixture(loop_scope="module")
async def house(standing_house: House) -> AsyncIterator[House]:
    """The house with everything running and nothing armed."""
    await standing_house.settle()
    yield standing_house
