"""One house for all tests that kill: what one test leaves behind, the next one finds running.

After a failure the processes are new ones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest
import pytest_asyncio
from kill_house import House

_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing_house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    folder: Path = tmp_path_factory.mktemp("house")
    house = House(folder)
    await house.set_up()
    yield house
    await house.tear_down()


@pytest_asyncio.fixture(loop_scope="module")
async def house(standing_house: House, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """The house with everything running, nothing armed and nothing under way."""
    await standing_house.settle()
    yield standing_house
    if request.node.stash.get(_FAILED, False):
        await standing_house.start_anew()
