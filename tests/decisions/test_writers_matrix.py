"""Every writer of what candidates are judged by, with every end that its transaction can have, in one process and in
two with the wake channel: the saved deadlines are those of the rows afterwards, and nothing is asked while nothing is
due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import asyncpg
import pytest
from tests.decisions.matrix_house import House, open_house
from tests.decisions.matrix_writers import WRITERS, Act, Writer

from lastcall.app import register
from lastcall.errors import Unavailable
from lastcall.testing.proxy import Cut
from lastcall.testing.quiet import assert_quiet

End: TypeAlias = Callable[[House, Writer, Act], Awaitable[None]]

STANDS_FOR = {*(f"ACC-0{number}" for number in range(1, 9)), "ACC-16", "ACC-19"}
"""The producers of the contract, and those that came later."""


async def committed(house: House, _: Writer, act: Act) -> None:
    await act(house.db)


async def rolled_back(house: House, _: Writer, act: Act) -> None:
    """The database answers COMMIT with an error."""
    await house.doom(armed=True)
    with pytest.raises(asyncpg.RaiseError, match="doomed"):
        await act(house.db)
    await house.doom(armed=False)


async def rolled_back_to_a_savepoint(house: House, writer: Writer, act: Act) -> None:
    """The caller goes on without it. Those that open their own transaction refuse to be called so (ACC-17)."""
    async with house.db.transaction():
        with pytest.raises(RuntimeError if writer.is_outermost else LookupError):
            async with house.db.transaction():
                await act(house.db)
                raise LookupError


async def unclear(house: House, _: Writer, act: Act) -> None:
    """It took effect, and nobody said so."""
    house.proxy.arm(Cut.AFTER)
    with pytest.raises(Unavailable):
        await act(house.db)


async def cancelled(house: House, _: Writer, act: Act) -> None:
    """In the middle of its COMMIT."""
    house.proxy.arm(Cut.SILENT)
    writing = asyncio.ensure_future(act(house.db))
    await house.proxy.reached.wait()
    writing.cancel()
    await house.proxy.release(answer=True)
    with suppress(asyncio.CancelledError):
        await writing
    assert writing.cancelled()


ENDS: dict[str, tuple[End, bool]] = {
    "commit": (committed, True),
    "rollback": (rolled_back, False),
    "savepoint": (rolled_back_to_a_savepoint, False),
    "unclear": (unclear, True),
    "cancellation": (cancelled, True),
}
"""With whether the rows are written in the end."""


async def rows(house: House) -> list[object]:
    """What candidates are judged by, as it stands."""
    found = await house.raw.fetch("""
        select j.id::text, j.status, j.activity_at, j.archive_due_at, c.state, c.retention_days, r.keep, r.version
          from (select club_id, id, status, activity_at, archive_due_at from join_requests
                union all select club_id, id, status, activity_at, archive_due_at from approvals) j
          join clubs c on c.id = j.club_id left join retention r on r.club_id = j.club_id and r.id = j.id
         order by j.id
    """)
    return [tuple(row) for row in found]


@pytest.mark.clause("ACC-09", "ACC-19", "SCH-03")
@pytest.mark.parametrize("processes", [1, 2], ids=["alone", "with another"])
@pytest.mark.parametrize("end", ENDS)
async def test_the_deadline_is_right_and_idle_is_quiet_after(
    database_url: str, end: str, processes: int
) -> None:
    register()
    assert {writer.clause for writer in WRITERS.values()} == STANDS_FOR
    carry_out, is_written = ENDS[end]
    async with open_house(database_url, processes) as house:
        for name, writer in WRITERS.items():
            act = await writer.prepare(house)
            await house.begin()
            before = await rows(house)
            await carry_out(house, writer, act)
            try:
                await house.settle()
                await house.idles()
            except AssertionError as error:
                raise AssertionError(f"{name}, {end}: {error}") from error
            assert (await rows(house) != before) is is_written, f"{name}, {end}"
            await house.clear()
        async with assert_quiet(house.db, 1):
            pass
