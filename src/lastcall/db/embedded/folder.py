"""The folder of an embedded database: where it is, whose it is, and who holds it.

::

    marker      says that the folder is Lastcall's, so that nothing else is ever touched
    lock        flock held by the process that runs the server; its text is that process's pid
    password    of the one database user
    data/       PostgreSQL's own
    run/        the socket, where the path is short enough
    server.log
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from lastcall.db.embedded.runner import Runner, user_name
from lastcall.errors import Invalid, Unavailable

ROOT_FOLDER = Path("/var/lib/lastcall")
"""Parent of the databases that root starts: they must lie where the unprivileged user can reach them."""

POINTER = "database-folder"
"""File in a home of root's that names the database's folder."""

USER = "lastcall"
DATABASE = "lastcall"

_MARKER = "lastcall-database"
_MARKER_TEXT = "This folder is a Lastcall database. Back it up with pg_dump, not by copying it.\n"
_SOCKET_PATH_LIMIT = 100
"""Bytes. The kernel's limit is 108 on Linux and 104 on macOS, both with a closing zero."""


@dataclass(frozen=True)
class Folder:
    """Paths of one embedded database."""

    home: Path
    path: Path
    runner: Runner

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def password(self) -> Path:
        return self.path / "password"

    @property
    def log(self) -> Path:
        return self.path / "server.log"

    @property
    def socket_folder(self) -> Path:
        """Where the socket is: in the folder, or, when that path is too long for one, in a short one of its
        own."""
        inside = self.path / "run"
        if len(os.fsencode(inside / ".s.PGSQL.5432")) <= _SOCKET_PATH_LIMIT:
            return inside
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"lastcall-{self.runner.uid}-{digest}"

    def url(self) -> str:
        """Address of the database for a process that may read the folder."""
        password = quote(self.password.read_text(encoding="utf-8").strip(), safe="")
        return f"postgresql://{USER}:{password}@/{DATABASE}?host={quote(str(self.socket_folder), safe='/')}"


@contextlib.contextmanager
def plain_file_errors(path: Path) -> Iterator[None]:
    """Turn what the file system refuses into a sentence that says what to do."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise Unavailable(
                "embedded_disk_full",
                f"The disk that holds {where} is full.",
                advice="Free some space and start again; nothing is lost.",
            ) from error
        raise Unavailable(
            "embedded_folder_refused",
            f"{where} cannot be used: {(error.strerror or str(error)).lower()}.",
            advice="Correct its permissions, or choose another folder with LASTCALL_HOME.",
        ) from error


def locate(home: Path, runner: Runner) -> Folder:
    """Where the database of ``home`` is, or will be. Creates nothing; refuses what is not Lastcall's."""
    home = home.absolute()
    pointer, own = home / POINTER, home / "postgres"
    with plain_file_errors(home):
        named = pointer.read_text(encoding="utf-8").strip() if pointer.exists() else None
        path = _path_for(home, own, named, runner)
        folder = Folder(home, path, runner)
        for candidate in (home, own):
            if (candidate / "PG_VERSION").exists():
                raise Invalid(
                    "embedded_folder_foreign",
                    f"{candidate} is the data folder of another PostgreSQL server.",
                    advice="Choose another folder with LASTCALL_HOME.",
                )
        if path.exists() and not (path / _MARKER).exists() and any(path.iterdir()):
            raise Invalid(
                "embedded_folder_foreign",
                f"{path} is not empty and not a Lastcall database.",
                advice="Choose another folder with LASTCALL_HOME, or move what is in there.",
            )
    return folder


def _path_for(home: Path, own: Path, named: str | None, runner: Runner) -> Path:
    if runner.is_other:
        if (own / _MARKER).exists():
            owner = user_name(own.stat().st_uid)
            raise Invalid(
                "embedded_folder_of_user",
                f"The database in {home} belongs to the user '{owner}'.",
                advice=f"Start Lastcall as '{owner}', or choose another folder with LASTCALL_HOME.",
            )
        digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
        return Path(named) if named else ROOT_FOLDER / digest
    if named:
        raise Invalid(
            "embedded_folder_of_root",
            f"The database of {home} was made by root and lies in {named}.",
            advice="Start Lastcall as root, or choose another folder with LASTCALL_HOME.",
        )
    return own


def prepare(folder: Folder) -> None:
    """Create what is missing, each with a mode of its own; folders that exist keep theirs."""
    with plain_file_errors(folder.path):
        folder.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.runner.is_other:
            folder.path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            _write(folder.home / POINTER, f"{folder.path}\n", 0o644)
        folder.path.mkdir(mode=0o700, exist_ok=True)
        folder.runner.own(folder.path)
        _write(folder.path / _MARKER, _MARKER_TEXT, 0o644)
        if not folder.password.exists():
            _write(folder.password, secrets.token_urlsafe(24), 0o600)
        folder.runner.own(folder.password)
        prepare_socket_folder(folder)


def prepare_socket_folder(folder: Folder) -> None:
    """A folder that only the server's user can enter. One that somebody else made first is refused."""
    path = folder.socket_folder
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if path.is_symlink() or status.st_uid not in {folder.runner.uid, os.geteuid()}:
        raise Unavailable(
            "embedded_socket_folder",
            f"{path}, where the database's socket belongs, is held by the user '{user_name(status.st_uid)}'.",
            advice="Remove it, or choose a shorter folder with LASTCALL_HOME.",
        )
    folder.runner.own(path)
    path.chmod(0o700)


def _write(path: Path, text: str, mode: int) -> None:
    """Whole or not at all, and never readable by more than ``mode`` allows."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    fresh = path.with_name(f".{path.name}.new")
    with contextlib.suppress(FileNotFoundError):
        fresh.unlink()
    with os.fdopen(
        os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8"
    ) as stream:
        stream.write(text)
    fresh.replace(path)


@contextlib.contextmanager
def hold(folder: Folder) -> Iterator[None]:
    """Hold the folder for this process; a second holder is told the first one's pid.

    The kernel lets go of it when the process ends, however it ends.
    """
    with plain_file_errors(folder.lock):
        descriptor = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise Unavailable(
                "embedded_folder_held",
                f"The database in {folder.home} is already in use by process {holder}.",
                advice="Stop that process, or choose another folder with LASTCALL_HOME.",
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_held(folder: Folder) -> bool:
    """Whether some process holds the folder now."""
    try:
        descriptor = os.open(folder.lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def forget_partial(folder: Folder) -> None:
    """Remove what an interrupted first start left behind."""
    shutil.rmtree(partial(folder), ignore_errors=True)


def partial(folder: Folder) -> Path:
    """Where initdb works; renamed to ``data`` when it is whole."""
    return folder.path / "data.partial"
