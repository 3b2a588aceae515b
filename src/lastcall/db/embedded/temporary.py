"""An embedded server for a while: for the demo's evening, for tests and for measurements."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from lastcall.db.embedded.folder import locate
from lastcall.db.embedded.runner import choose_runner
from lastcall.db.embedded.server import EmbeddedServer


@asynccontextmanager
async def temporary_server(
    bin_dir: Path | None = None, settings: Mapping[str, str] | None = None
) -> AsyncIterator[EmbeddedServer]:
    """A server of which nothing is left afterwards, wherever it put its data. Its home folder may be used
    meanwhile."""
    home = Path(tempfile.mkdtemp(prefix="lastcall-"))
    try:
        async with EmbeddedServer(home, bin_dir, settings=settings) as server:
            yield server
    finally:
        shutil.rmtree(locate(home, choose_runner()).path, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)
