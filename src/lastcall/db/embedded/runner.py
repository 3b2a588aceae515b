"""Which system user the server runs as: PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from lastcall.errors import Unavailable

UNPRIVILEGED = "nobody"
"""Who runs the server when Lastcall itself runs as root. initdb needs a user that is in the passwd database.
"""


@dataclass(frozen=True)
class Runner:
    """The system user of the server process. ``is_other``: it is not the user of this process."""

    uid: int
    gid: int
    is_other: bool

    def own(self, path: Path) -> None:
        """Give ``path`` to this user."""
        if self.is_other:
            os.chown(path, self.uid, self.gid)

    def can_read(self, path: Path) -> bool:
        """Whether this user may read ``path`` and enter every folder above it."""
        if not self.is_other:
            return os.access(path, os.R_OK)
        return all(self._may(step, stat.S_IXOTH) for step in path.resolve().parents) and self._may(
            path.resolve(), stat.S_IROTH
        )

    def _may(self, path: Path, bit: int) -> bool:
        try:
            status = path.stat()
        except OSError:
            return False
        if status.st_uid == self.uid:
            bit <<= 6
        elif status.st_gid == self.gid:
            bit <<= 3
        return bool(status.st_mode & bit)


def choose_runner() -> Runner:
    """This process's own user, or the unprivileged one when that is root."""
    if os.geteuid() != 0:
        return Runner(os.geteuid(), os.getegid(), is_other=False)
    try:
        entry = pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        raise Unavailable(
            "embedded_no_user",
            f"PostgreSQL does not run as root, and this system has no user '{UNPRIVILEGED}' to run it as.",
            advice="Start Lastcall as another user, or set DATABASE_URL.",
        ) from None
    return Runner(entry.pw_uid, entry.pw_gid, is_other=True)


def user_name(uid: int) -> str:
    """The user's name for a message; the number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
