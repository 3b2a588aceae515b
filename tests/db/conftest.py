"""Homes of embedded databases: an empty one, and one whose database was set up."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastcall.db.embedded import EmbeddedServer
from lastcall.db.embedded.folder import POINTER, Folder, locate, prepare
from lastcall.db.embedded.runner import choose_runner


@pytest.fixture
def home() -> Iterator[Path]:
    """An empty home in a folder that every user may enter; what root puts elsewhere goes with it."""
    parent = Path(tempfile.mkdtemp(prefix="lastcall-home-"))
    parent.chmod(0o755)
    yield parent / "home"
    pointer = parent / "home" / POINTER
    if pointer.is_file():
        shutil.rmtree(pointer.read_text().strip(), ignore_errors=True)
    # A server that is still going down takes its own files away meanwhile.
    shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture(scope="session")
def made() -> Iterator[Folder]:
    """A database that was set up once, for all tests that need one to begin with. Nothing runs in it."""
    parent = Path(tempfile.mkdtemp(prefix="lastcall-made-"))

    async def make() -> Folder:
        async with EmbeddedServer(parent / "home") as server:
            return server.folder

    with asyncio.Runner() as runner:
        folder = runner.run(make())
    yield folder
    shutil.rmtree(folder.path)
    shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def made_home(home: Path, made: Folder) -> Path:
    """A home whose database was set up before and is not running."""
    place = locate(home, choose_runner())
    prepare(place)
    place.password.write_text(made.password.read_text())
    subprocess.run(["cp", "-a", made.data, place.data], check=True)
    return home
