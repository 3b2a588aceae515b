"""The launcher: start PostgreSQL as a child, wait until it is ready, stop it cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from lastcall.db.connect import connect
from lastcall.db.embedded import folder as folders
from lastcall.db.embedded.binaries import DISTRIBUTION, Binaries, find_binaries, look_at, readable_for
from lastcall.db.embedded.folder import DATABASE, USER, Folder, plain_file_errors
from lastcall.db.embedded.runner import choose_runner
from lastcall.errors import Invalid, Unavailable

INIT_TIMEOUT = 120.0
"""Seconds for setting up a new data folder (half a second on an idle machine)."""

START_TIMEOUT = 60.0
"""Seconds until a start counts as failed; recovery after a crash may take most of it."""

STOP_TIMEOUT = 30.0
"""Seconds for a clean stop before the server is told to drop everything (it recovers at its next start)."""

LOG_LIMIT = 10_000_000
"""Bytes of server.log, above which a start keeps it as server.log.1 and begins a new one."""

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "shared_preload_libraries": "pg_stat_statements",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    # The log names errors, never the values in them.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}
"""Given on the server's command line, so that an older data folder has them too."""

_TELLING = re.compile(r"FATAL|PANIC|error:")
_TIDYING = re.compile(r"initdb: (removing|data directory .* not removed)|child process exited with exit code")
"""What initdb says last, whatever went wrong."""

_LEVEL = re.compile(r"^.*(FATAL|PANIC|initdb: error): +")

_POLL = 0.01
_GLANCE = 1.0
_HERE = Path(__file__).parent


class EmbeddedServer:
    """``async with EmbeddedServer(home) as server: server.url``.

    ``bin_dir`` names the PostgreSQL programs to use; ``settings`` add to the server's own. Raises ``Invalid``
    or ``Unavailable``, each with one sentence, when the folder is held, foreign or of another major version,
    or when the server does not start.
    """

    def __init__(
        self, home: Path, bin_dir: Path | None = None, *, settings: Mapping[str, str] | None = None
    ) -> None:
        self._home = home
        self._bin_dir = bin_dir
        self._settings = {**SETTINGS, **(settings or {})}
        self._held = contextlib.ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._folder: Folder

    @property
    def url(self) -> str:
        """Address of the database; it carries the password."""
        return self._folder.url()

    @property
    def maintenance_url(self) -> str:
        """Address of the database ``postgres`` on the same server, from which others are created."""
        return _maintenance_url(self._folder)

    @property
    def folder(self) -> Folder:
        """Where everything of this server lies."""
        return self._folder

    @property
    def pid(self) -> int:
        """Process id of the server."""
        if self._process is None:
            raise RuntimeError("The embedded server is not running.")
        return self._process.pid

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await asyncio.shield(self._stop())
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.shield(self._stop())

    async def ended(self) -> None:
        """Wait until PostgreSQL has ended by itself (killed, out of memory). Sends it nothing."""
        process = self._process
        while process is not None and process.poll() is None:  # noqa: ASYNC110 - its end sends no event
            await asyncio.sleep(_GLANCE)

    async def _start(self) -> None:
        if sys.platform == "win32":
            raise Unavailable(
                "embedded_platform",
                "The embedded database runs on Linux and macOS.",
                advice="Set DATABASE_URL to a PostgreSQL server.",
            )
        runner = choose_runner()
        self._folder = folder = folders.locate(self._home, runner)
        folders.prepare(folder)
        self._held.enter_context(folders.hold(folder))
        binaries = find_binaries(self._bin_dir)
        with plain_file_errors(folders.ROOT_FOLDER):
            binaries = readable_for(runner, binaries, folders.ROOT_FOLDER / "binaries")
        self._refuse_other_major(binaries)
        with plain_file_errors(folder.path):
            await self._wait_for_predecessor()
            is_new = not folder.data.exists()
            if is_new:
                await self._initialize(binaries)
            await self._launch(binaries)
        await self._ensure_database()

    def _refuse_other_major(self, binaries: Binaries) -> None:
        folder = self._folder
        if not folder.data.exists():
            return
        with plain_file_errors(folder.data):
            version = folder.data / "PG_VERSION"
            found = version.read_text(encoding="ascii", errors="replace").strip() if version.exists() else ""
        if not found:
            raise Invalid(
                "embedded_data_damaged",
                f"{folder.data} is no complete PostgreSQL data folder: its file PG_VERSION is missing.",
                advice="Restore it from a backup, or move it away to start with an empty database.",
            )
        if found == str(binaries.major):
            return
        older = look_at(DISTRIBUTION / found / "bin") if found.isdigit() else None
        way = f"the programs in {older.folder}" if older else f"an installed PostgreSQL {found}"
        raise Invalid(
            "embedded_other_major",
            f"{folder.data} was written by PostgreSQL {found}, and these programs are {binaries.version}.",
            advice=(
                f"Dump it with {way} (LASTCALL_POSTGRES_BIN), move the folder away, "
                f"and restore the dump into a new one: see 'Upgrading the embedded database' in the docs."
            ),
        )

    async def _wait_for_predecessor(self) -> None:
        """A server whose owner was killed may still be shutting down; starting beside it would be refused."""
        pid = _server_pid(self._folder)
        if pid is None:
            return
        if not await _until(lambda: not _is_server(pid, self._folder), STOP_TIMEOUT):
            raise Unavailable(
                "embedded_folder_held",
                f"The database in {self._folder.home} is still served by process {pid}, left behind.",
                advice=f"Stop it with: kill -INT {pid}",
            )

    async def _initialize(self, binaries: Binaries) -> None:
        folder = self._folder
        folders.forget_partial(folder)
        arguments = [
            *("--pgdata", str(folders.partial(folder))),
            *("--username", USER),
            *("--auth", "scram-sha-256"),
            *("--pwfile", str(folder.password)),
            *("--encoding", "UTF8"),
            "--data-checksums",
            *_locale(binaries.major),
        ]
        begin = self._log_end()
        process = self._spawn(binaries, "initdb", arguments)
        await _until(lambda: process.poll() is not None, INIT_TIMEOUT)
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.returncode != 0:
            folders.forget_partial(folder)
            raise Unavailable(
                "embedded_init_failed",
                f"PostgreSQL could not set up {folder.data}: {self._cause(begin)}.",
                advice="Free disk space or correct permissions there, then start again.",
            )
        folders.partial(folder).rename(folder.data)

    async def _launch(self, binaries: Binaries) -> None:
        folder = self._folder
        if folder.log.exists() and folder.log.stat().st_size > LOG_LIMIT:
            folder.log.replace(folder.log.with_suffix(".log.1"))
        settings = {**self._settings, "unix_socket_directories": str(folder.socket_folder)}
        arguments = ["-D", str(folder.data)]
        for name, value in settings.items():
            arguments += ["-c", f"{name}={value}"]
        begin = self._log_end()
        self._process = self._spawn(binaries, "postgres", arguments)
        if not _can_tie_lives():
            self._watchdog = _watch(self._process.pid)
        await self._until_ready(self._process, begin)

    async def _until_ready(self, process: subprocess.Popen[bytes], begin: int) -> None:
        def is_settled() -> bool:
            return process.poll() is not None or _is_ready(self._folder, process.pid)

        if not await _until(is_settled, START_TIMEOUT):
            raise Unavailable(
                "embedded_start_slow",
                f"PostgreSQL was not ready after {START_TIMEOUT:.0f} seconds.",
                advice=f"See {self._folder.log}; after a crash, start again and let it recover.",
            )
        if process.poll() is not None:
            raise Unavailable(
                "embedded_start_failed",
                f"PostgreSQL did not start: {self._cause(begin)}.",
                advice=f"See {self._folder.log}.",
            )

    async def _ensure_database(self) -> None:
        """Also after a first start that ended between initdb and here."""
        connection = await connect(self.maintenance_url)
        try:
            if not await connection.fetchval("select true from pg_database where datname = $1", DATABASE):
                await connection.execute(f"create database {DATABASE}")
        finally:
            await connection.close()

    def _spawn(self, binaries: Binaries, program: str, arguments: list[str]) -> subprocess.Popen[bytes]:
        folder = self._folder
        owner = os.getpid() if _can_tie_lives() else 0
        runner = folder.runner
        launcher = [sys.executable, "-I", "-S", str(_HERE / "launch.py")]
        identity = [str(runner.uid), str(runner.gid), str(owner)]
        with folder.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own script and the programs we looked up
                [*launcher, *identity, binaries.program(program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder.path,
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            )

    def _log_end(self) -> int:
        """Where the log ends now: what stands before is about an earlier start."""
        with contextlib.suppress(FileNotFoundError):
            return self._folder.log.stat().st_size
        return 0

    def _cause(self, begin: int) -> str:
        """The line of the log from ``begin`` on that says most, without its time and level."""
        with contextlib.suppress(OSError), self._folder.log.open("rb") as log:
            log.seek(begin)
            lines = log.read().decode(errors="replace").splitlines()
            told = [line for line in lines if line.strip() and not _TIDYING.match(line)]
            telling = [line for line in told if _TELLING.search(line)]
            for line in (telling or told)[-1:]:
                return _LEVEL.sub("", line).strip().rstrip(".")
        return "it says nothing"

    async def _stop(self) -> None:
        try:
            if self._process is not None:
                await _end(self._process)
                self._process = None
            if self._watchdog is not None:
                self._watchdog.kill()
                self._watchdog.communicate()
                self._watchdog = None
            if hasattr(self, "_folder") and self._folder.socket_folder.parent != self._folder.path:
                with contextlib.suppress(OSError):
                    self._folder.socket_folder.rmdir()
        finally:
            self._held.close()


def running_url(home: Path) -> str | None:
    """Address of the database of ``home`` when another process is running it, else ``None``.

    For commands that are given while the server runs.
    """
    folder = folders.locate(home, choose_runner())
    pid = _server_pid(folder)
    if pid is None or not folders.is_held(folder) or not _is_ready(folder, pid):
        return None
    return folder.url()


def _maintenance_url(folder: Folder) -> str:
    return folder.url().replace(f"@/{quote(DATABASE)}?", "@/postgres?")


def _watch(pid: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-I", "-S", str(_HERE / "watchdog.py"), str(pid)],
        stdin=subprocess.PIPE,
    )


async def _end(process: subprocess.Popen[bytes]) -> None:
    for number, patience in ((signal.SIGINT, STOP_TIMEOUT), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
        if process.poll() is None:
            process.send_signal(number)
        if await _until(lambda: process.poll() is not None, patience):
            return


async def _until(condition: Callable[[], bool], patience: float) -> bool:
    """Whether ``condition`` came true within ``patience`` seconds. What is waited for sends no event."""
    deadline = asyncio.get_running_loop().time() + patience
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(_POLL)
    return True


def _can_tie_lives() -> bool:
    """The kernel watches the *thread* that started the server: it must be one that lives as long as we do."""
    return sys.platform == "linux" and threading.current_thread() is threading.main_thread()


def _locale(major: int) -> list[str]:
    """Code-point order and Unicode's letters, on any host."""
    if major >= 17:
        return ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    return ["--locale=C.UTF-8"]


def _pid_file(folder: Folder) -> list[str]:
    """Lines of postmaster.pid: pid, folder, start, port, socket folder, address, shared memory, status."""
    try:
        return (folder.data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []


def _server_pid(folder: Folder) -> int | None:
    first = next(iter(_pid_file(folder)), "")
    return int(first) if first.isdigit() else None


def _is_ready(folder: Folder, pid: int) -> bool:
    lines = _pid_file(folder)
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


def _is_server(pid: int, folder: Folder) -> bool:
    """Whether ``pid`` is a live server of this folder; a number that was given to another program is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    command = Path(f"/proc/{pid}/cmdline")
    try:
        return os.fsencode(folder.data) in command.read_bytes()
    except OSError:
        # Without /proc nobody can tell; the server itself refuses a folder that is served.
        return not Path("/proc/self").exists()
