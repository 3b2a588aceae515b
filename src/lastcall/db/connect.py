"""One connection to PostgreSQL, set up the house's way, with each way it can fail put in one sentence."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import asyncpg

from lastcall.errors import DatabaseAway, Invalid, LastcallError, Unavailable

MINIMUM_MAJOR = 15
"""The oldest PostgreSQL that is served; plans and locks are tested on it."""

CONNECT_TIMEOUT = timedelta(seconds=10)
APPLICATION_NAME = "lastcall"

_EXAMPLE = "It looks like postgresql://user:password@host:5432/database."
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPALIVE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""Seconds, seconds, seconds, probes: a peer that vanished is noticed within a minute (macOS has the second
name)."""


DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
"""Everything that a connection or a statement on it can end with. The internal error is that of a connection whose
end was read but not yet seen by the driver."""


@dataclass(frozen=True)
class TimeLimits:
    """Server-side limits of every session. A zero limit is none."""

    lock: timedelta = timedelta(seconds=5)
    statement: timedelta = timedelta(seconds=30)
    idle_in_transaction: timedelta = timedelta(seconds=60)


PATIENT = TimeLimits(statement=timedelta(0), idle_in_transaction=timedelta(0))
"""For migrations: building an index may take hours, waiting for a lock may not."""


@dataclass
class StatementCounter:
    """How many statements were sent."""

    value: int = 0


if TYPE_CHECKING:
    _DriverConnection = asyncpg.Connection[asyncpg.Record]
else:
    _DriverConnection = asyncpg.Connection  # generic only for the type checker


class Connection(_DriverConnection):
    """An asyncpg connection that counts what it sends and is not reset between two uses.

    Nothing in the house changes a session's settings, so the statement that would reset them on every release
    is saved; an open transaction is still rolled back.
    """

    counter: StatementCounter | None = None

    def get_reset_query(self) -> str:
        return ""

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        self._count()
        return super().execute(*args, **kwargs)

    def executemany(self, *args: Any, **kwargs: Any) -> Any:
        self._count()
        return super().executemany(*args, **kwargs)

    def fetch(self, *args: Any, **kwargs: Any) -> Any:
        self._count()
        return super().fetch(*args, **kwargs)

    def fetchrow(self, *args: Any, **kwargs: Any) -> Any:
        self._count()
        return super().fetchrow(*args, **kwargs)

    def fetchval(self, *args: Any, **kwargs: Any) -> Any:
        self._count()
        return super().fetchval(*args, **kwargs)

    def _count(self) -> None:
        if self.counter is not None:
            self.counter.value += 1


async def connect(
    url: str,
    *,
    limits: TimeLimits | None = None,
    application_name: str = APPLICATION_NAME,
    counter: StatementCounter | None = None,
) -> Connection:
    """Open one connection. ``Invalid``: a malformed ``url``; ``Unavailable``: everything else."""
    where = describe(url)
    limits = limits or TimeLimits()
    with _plain_sentences(where):
        connection = await asyncpg.connect(
            url,
            timeout=CONNECT_TIMEOUT.total_seconds(),
            connection_class=Connection,
            max_cached_statement_lifetime=0,
            server_settings={
                "application_name": application_name,
                "timezone": "UTC",
                # Locks first, and the next statement sees what was committed meanwhile: whatever the server prefers.
                "default_transaction_isolation": "read committed",
                "lock_timeout": _milliseconds(limits.lock),
                "statement_timeout": _milliseconds(limits.statement),
                "idle_in_transaction_session_timeout": _milliseconds(limits.idle_in_transaction),
                # Statements here are short; compiling one takes longer than running it.
                "jit": "off",
            },
        )
    connection.counter = counter
    _keep_alive(connection)
    major = connection.get_server_version().major
    if major < MINIMUM_MAJOR:
        await connection.close()
        raise Unavailable(
            "database_too_old",
            f"{where} runs PostgreSQL {major}; Lastcall needs {MINIMUM_MAJOR} or newer.",
            advice="Upgrade the server, or unset DATABASE_URL to use the embedded one.",
        )
    return connection


def describe(url: str) -> str:
    """``The database NAME at HOST``, without user and password. ``Invalid``: malformed."""
    try:
        parts = urlsplit(url.strip())
        port, query = parts.port, parse_qs(parts.query)
    except ValueError as error:
        raise Invalid(
            "database_url_invalid", f"DATABASE_URL is no address: {error}.", advice=_EXAMPLE
        ) from None
    if parts.scheme not in {"postgres", "postgresql"}:
        found = f"starts with '{parts.scheme}:'" if parts.scheme else "has no 'postgresql://' in front"
        raise Invalid(
            "database_url_invalid", f"DATABASE_URL {found}; Lastcall needs PostgreSQL.", advice=_EXAMPLE
        )
    host = parts.hostname or query.get("host", [""])[0]
    name = parts.path.lstrip("/") or query.get("database", query.get("dbname", [""]))[0]
    if not host:
        raise Invalid("database_url_invalid", "DATABASE_URL names no host.", advice=_EXAMPLE)
    if not name:
        raise Invalid("database_url_invalid", "DATABASE_URL names no database.", advice=_EXAMPLE)
    return f"The database '{name}' at {host}{f':{port}' if port else ''}"


@contextlib.contextmanager
def _plain_sentences(where: str) -> Iterator[None]:
    try:
        yield
    except (*DRIVER_ERRORS, ValueError) as error:
        raise explain(where, error) from error


def explain(where: str, error: Exception) -> LastcallError:
    """What a failed attempt to connect means, and what to do about it."""
    match error:
        case asyncpg.InvalidCatalogNameError():
            code, what, advice = "database_missing", "does not exist", "Create it, or correct DATABASE_URL."
        case asyncpg.InvalidAuthorizationSpecificationError():
            code, what = "database_sign_in_refused", "refused this user or password"
            advice = "Correct user and password in DATABASE_URL."
        case asyncpg.TooManyConnectionsError():
            code, what = "database_full", "has no free connection"
            advice = "Raise max_connections there, or run fewer processes."
        case asyncpg.CannotConnectNowError():
            code, what, advice = (
                "database_starting",
                "is starting up or shutting down",
                "Try again in a moment.",
            )
        case asyncpg.PostgresError():
            code, what = "database_refused", f"refused the connection: {str(error).rstrip('.')}"
            advice = "Behind a pooler, connect to the server itself."
        case asyncpg.InterfaceError() | ValueError() if not isinstance(error, OSError):
            return Invalid("database_url_invalid", f"DATABASE_URL cannot be used: {error}.", advice=_EXAMPLE)
        case socket.gaierror():
            code, what, advice = "database_host_unknown", "is on a host that no name server knows", _EXAMPLE
        case ssl.SSLError() | ssl.CertificateError():
            code, what = "database_tls", f"has no TLS that fits: {error}"
            advice = "See sslmode and sslrootcert in DATABASE_URL."
        case _ if "SSL" in str(error):
            code, what = "database_tls", "does not speak TLS"
            advice = "Use sslmode=disable on a trusted network, or turn TLS on there."
        case TimeoutError():
            code, what = "database_unreachable", f"did not answer in {CONNECT_TIMEOUT.seconds} seconds"
            advice = "Check host, port and firewall."
        case _:
            code, what = "database_unreachable", "cannot be reached: nothing listens there"
            advice = "Start the server, or correct host and port in DATABASE_URL."
    return DatabaseAway(code, f"{where} {what}.", advice=advice)


def _milliseconds(limit: timedelta) -> str:
    return str(round(limit.total_seconds() * 1000))


def _keep_alive(connection: Connection) -> None:
    """asyncpg sets no keepalive and offers no way to: a listener would never learn that its peer is gone."""
    transport = connection._transport  # type: ignore[attr-defined]
    channel = transport.get_extra_info("socket")
    if channel is None or channel.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            channel.setsockopt(socket.IPPROTO_TCP, option, value)
