"""The migrations make what the models say, and docs/reference/schema.sql shows it; `--write` writes that file
anew."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from lastcall.db.dump import drift, dump
from lastcall.db.embedded import temporary_server
from lastcall.db.migrations import migrate
from lastcall.schema import SCHEMA

COMMITTED = Path("docs/reference/schema.sql")


async def look(*, write: bool) -> list[str]:
    async with temporary_server() as server:
        await migrate(server.url, SCHEMA)
        text = await dump(server.url)
        complaints = await drift(server.url, SCHEMA)
        await migrate(server.url, SCHEMA)
        if await dump(server.url) != text:
            complaints.append("Running the migrations a second time changed the schema.")
    if write:
        COMMITTED.write_text(text, encoding="utf-8")
    elif not COMMITTED.exists() or COMMITTED.read_text(encoding="utf-8") != text:
        complaints.append(f"{COMMITTED} is not what the migrations make; run `make schema` and commit it.")
    return complaints


def main() -> int:
    complaints = asyncio.run(look(write="--write" in sys.argv[1:]))
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
