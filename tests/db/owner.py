"""A process that owns an embedded server: prints the server's pid and address, then waits to be ended.

python owner.py HOME [thread]
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from pathlib import Path

from lastcall.db.embedded import EmbeddedServer


async def own(home: Path) -> None:
    async with EmbeddedServer(home) as server:
        print(server.pid, server.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background job ignores
    if sys.argv[2:] == ["thread"]:
        thread = threading.Thread(target=lambda: asyncio.run(own(Path(sys.argv[1]))))
        thread.start()
        thread.join()
    else:
        asyncio.run(own(Path(sys.argv[1])))
