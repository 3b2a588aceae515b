"""Running the server process: the socket, the database, the application, and an orderly end.

On SIGTERM or Ctrl-C live streams and long polls end first, the scheduler finishes the row in its hand,
requests that are under way finish, and then the database is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import rich_click as click
import structlog
import uvicorn

from lastcall.app import House, create_app
from lastcall.cli.connections import HEAD_LIMIT, Connection
from lastcall.cli.running import database_address
from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.database import Database
from lastcall.db.migrations import migrate
from lastcall.errors import Invalid, Unavailable
from lastcall.schema import SCHEMA
from lastcall.settings import Settings

FINISH_SECONDS = 20
"""How long requests that are under way may take after the stop; services have shorter limits of their own."""

log = structlog.get_logger()


class Server(uvicorn.Server):
    """uvicorn, told what to end before it waits for open requests. Signals are ours: uvicorn would raise
    them again and so kill the process before the embedded database is stopped.
    """

    def __init__(self, config: uvicorn.Config, begin_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._begin_stop = begin_stop
        self.ready = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._begin_stop()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """Take the address before anything is started, so that a port in use costs nothing."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise Invalid(
            "host_unknown",
            f"{host} is no address of this computer.",
            advice="Set LASTCALL_HOST to one that is.",
        ) from error
    taken = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        taken.listen(2048)
    except OSError as error:
        taken.close()
        raise _not_bound(error, host, port) from error
    return taken


def _not_bound(error: OSError, host: str, port: int) -> Unavailable | Invalid:
    if error.errno == errno.EADDRINUSE:
        return Unavailable(
            "port_in_use",
            f"Port {port} on {host} is in use by another program.",
            advice="Stop that one, or choose another port with LASTCALL_PORT.",
        )
    if error.errno == errno.EACCES:
        return Unavailable(
            "port_not_allowed",
            f"This user may not listen on port {port}.",
            advice="Choose a port above 1023 with LASTCALL_PORT and put a proxy in front.",
        )
    return Invalid(
        "host_unknown", f"{host} is no address of this computer.", advice="Set LASTCALL_HOST to one that is."
    )


@asynccontextmanager
async def running_server(
    settings: Settings,
    database: Database,
    *,
    clock: Clock = SYSTEM_CLOCK,
    taken: socket.socket | None = None,
    logs_requests: bool = False,
) -> AsyncIterator[Server]:
    """Serve over ``database`` until the block ends; returns into the block when requests are answered.

    ``logs_requests``: a line in the log for each of them.
    """
    taken = taken or bind(settings.host, settings.port)
    house = House(settings, database, clock)
    config = uvicorn.Config(
        create_app(house, logs_requests=logs_requests),
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # The intake reads them: it takes the hop that the proxy added, and no other.
        timeout_graceful_shutdown=FINISH_SECONDS,
        ws="none",
        http=Connection,
        h11_max_incomplete_event_size=HEAD_LIMIT,
    )
    server = Server(config, house.begin_stop)
    serving = asyncio.create_task(server.serve(sockets=[taken]), name="server")
    try:
        ready = asyncio.create_task(server.ready.wait())
        await asyncio.wait({ready, serving}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if not server.started:
            serving.result()
            raise Unavailable(
                "server_not_started", "The server did not start.", advice="See the log lines above."
            )
        yield server
    finally:
        server.should_exit = True
        await asyncio.shield(serving)


async def serve(settings: Settings, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """The whole of ``lastcall serve``: until a signal, with the embedded database when there is no other."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    has_lost_database = False

    def lost() -> None:
        nonlocal has_lost_database
        has_lost_database = True
        stop.set()

    with contextlib.closing(bind(settings.host, settings.port)) as taken:
        async with database_address(settings, join_running=False, lost=lost) as url:
            await migrate(url, SCHEMA)
            database = await Database.open(url)
            try:
                async with running_server(settings, database, clock=clock, taken=taken, logs_requests=True):
                    address = ":".join(str(part) for part in taken.getsockname()[:2])
                    click.echo(f"Lastcall is at {settings.public_url} (listening on {address})")
                    await stop.wait()
                    log.info("stopping")
            finally:
                await database.close()
    if has_lost_database:
        raise Unavailable(
            "database_ended",
            "The embedded database ended by itself, so the server stopped.",
            advice=f"Start the server again; {settings.home} has the database's log. Nothing committed is lost.",
        )
