"""Run by the test that kills it: removes deleted clubs of the database at the given address, page by page."""

from __future__ import annotations

import asyncio
import sys

import lastcall.schema  # noqa: F401 - all tables
from lastcall.clubs import deletion
from lastcall.db.database import Database
from lastcall.deadlines.owner import More, Stop


async def main(url: str, rows: int) -> None:
    deletion.ROWS = rows
    database = await Database.open(url)
    owner = deletion.club_deletion_owner(database)
    while isinstance(await owner.run_pass(Stop()), More):
        pass


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
