"""Everything that has to stand before the evening begins: database, simulated VRChat, club, server, collector."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lastcall.cli.server import bind, running_server
from lastcall.db.database import Database
from lastcall.db.embedded import EmbeddedServer, temporary_server
from lastcall.db.ids import encode_id
from lastcall.db.migrations import migrate
from lastcall.demo.children import Child
from lastcall.demo.club import DemoClub, ensure_club, until_in_group
from lastcall.schema import SCHEMA
from lastcall.settings import Settings
from lastcall.vrchat.simulator.remote import RemoteSimulator
from lastcall.vrchat.simulator.seed import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, Seed

Say = Callable[[str], None]


@dataclass
class Stage:
    """The running demo. ``collector`` is replaced when it is killed and started again."""

    settings: Settings
    db: Database
    simulator: RemoteSimulator
    simulator_url: str
    seed: Seed
    club: DemoClub
    server_url: str
    collector: Child | None = None

    async def start_collector(self, *, signs_in_anew: bool = False) -> None:
        """Start the collector, which signs in to the simulated VRChat as it would to the real one.

        ``signs_in_anew``: this simulated VRChat has just begun and knows no session of an earlier one.
        """
        self.collector = await Child.start(
            "collector",
            *(["--sign-in-anew"] if signs_in_anew else []),
            environment={
                "LASTCALL_HOME": str(self.settings.home),
                "LASTCALL_SERVER_URL": self.server_url,
                "LASTCALL_ACCOUNT": encode_id(self.club.account_id),
                "LASTCALL_WORKER_KEY": self.club.worker_key,
                "LASTCALL_VRCHAT_URL": self.simulator_url,
                "LASTCALL_VRCHAT_CONTACT": "demo@club.example",
                "LASTCALL_VRCHAT_USERNAME": BOT_USERNAME,
                "LASTCALL_VRCHAT_PASSWORD": BOT_PASSWORD,
                "LASTCALL_VRCHAT_TOTP_SECRET": BOT_TOTP_SECRET,
            },
            log=self.settings.home / "collector.log",
        )

    async def stop_collector(self) -> None:
        if self.collector is not None:
            await self.collector.stop()


@asynccontextmanager
async def stage(settings: Settings, *, members: int, is_kept: bool, say: Say) -> AsyncIterator[Stage]:
    """Put everything up, and take it down again at the end of the block. Unless it ``is_kept`` in the settings'
    home, it all happens in a folder that is removed."""
    say("Starting PostgreSQL")
    embedded = (
        EmbeddedServer(settings.home, settings.postgres_bin)
        if is_kept
        else temporary_server(settings.postgres_bin)
    )
    async with embedded as postgres:
        settings = dataclasses.replace(settings, home=postgres.folder.home)
        with contextlib.closing(bind(settings.host, settings.port)) as taken:
            await migrate(postgres.url, SCHEMA)
            db = await Database.open(postgres.url)
            try:
                say(f"Starting a simulated VRChat with a group of {members}")
                child = await Child.start(
                    *("simulator", "--port", str(settings.simulator_port), "--members", str(members)),
                    environment={"LASTCALL_SIMULATOR_HOST": settings.simulator_host},
                    log=settings.home / "simulator.log",
                )
                try:
                    async with _served(settings, db, taken, await child.address(), say) as running:
                        yield running
                finally:
                    await child.stop()
            finally:
                await db.close()


@asynccontextmanager
async def _served(
    settings: Settings, db: Database, taken: socket.socket, simulator_url: str, say: Say
) -> AsyncIterator[Stage]:
    simulator = RemoteSimulator(simulator_url)
    seed = await simulator.seed()
    club = await ensure_club(db, seed)
    say("Starting the server")
    host, port = taken.getsockname()[:2]
    async with running_server(settings, db, taken=taken):
        running = Stage(settings, db, simulator, simulator_url, seed, club, f"http://{host}:{port}")
        say("Starting the collector")
        await running.start_collector(signs_in_anew=True)
        try:
            await until_in_group(db, club)
            yield running
        finally:
            await running.stop_collector()
