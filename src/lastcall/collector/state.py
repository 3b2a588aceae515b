"""The state folder: who this worker is, and the lock that lets one process at a time be it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from lastcall.errors import Invalid, Unavailable

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_ID = re.compile(r"[0-7][0-9a-hjkmnp-tv-z]{25}")


def fresh_id() -> str:
    """A random id in the form that ids have on the wire: 128 bits as 26 Crockford characters."""
    return secrets.choice(_CROCKFORD[:8]) + "".join(secrets.choice(_CROCKFORD) for _ in range(25))


class StateFolder:
    """The folder with the worker's id, its journal and the account's session, locked for this process.

    A second process on the same folder would be the same worker twice: it is refused and told who holds it.
    """

    def __init__(self, path: Path, lock: int, worker_id: str) -> None:
        self.path = path
        self.worker_id = worker_id
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> StateFolder:
        """Lock ``path`` (made, mode 0700, when missing). Raises ``Unavailable`` or ``Invalid``."""
        with usable(path):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(lock)
            raise Unavailable(
                "state_folder_held",
                f"The state folder {path} is in use by the process {holder}.",
                advice="Stop that collector, or give this one a folder of its own.",
            ) from error
        try:
            with usable(path):
                os.ftruncate(lock, 0)
                os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)
                worker_id = cls._worker_id(path / "worker-id")
        except BaseException:
            os.close(lock)
            raise
        return cls(path, lock, worker_id)

    @staticmethod
    def _worker_id(path: Path) -> str:
        if not path.exists():
            replace_durably(path, f"{fresh_id()}\n".encode("ascii"))
        text = path.read_text("ascii", "replace").strip()
        if not _ID.fullmatch(text):
            raise Invalid(
                "worker_id",
                f"The worker's id in {path} is damaged.",
                advice="Delete that file; this collector then starts as a new worker.",
            )
        return text

    def close(self) -> None:
        """Let another process have the folder."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._lock, 0)
        os.close(self._lock)


@contextlib.contextmanager
def usable(path: Path) -> Iterator[None]:
    """What the disk refuses in here, as one sentence about the state folder ``path``."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            "state_folder",
            f"The state folder {path} cannot be used: {error.strerror}.",
            advice="Give a folder that this user may write to, on a disk with some space.",
        ) from error


def replace_durably(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one step that survives a power cut: afterwards it is the old or the new."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    fsync_folder(path.parent)


def fsync_folder(path: Path) -> None:
    """Make the names in ``path`` durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
