from __future__ import annotations

import pytest

from lastcall.testing.fake_clock import FakeClock
from tests.deadlines.scripted import FakeServer


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def server(clock: FakeClock) -> FakeServer:
    return FakeServer(clock)
