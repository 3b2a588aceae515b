"""The club in whose calendar most of these tests write."""

from __future__ import annotations

import pytest
from tests.clubs.house import House, open_house

from lastcall.app import register
from lastcall.db.database import Database


@pytest.fixture
async def club(db: Database) -> House:
    register()
    return await open_house(db)
