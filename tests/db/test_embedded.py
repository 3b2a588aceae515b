"""The embedded server: data survives, it does not outlive its owner, and nothing foreign is touched."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest
from embedded_owner import START, execute, is_running, owned_elsewhere, value

from lastcall.db.connect import connect
from lastcall.db.embedded import EmbeddedServer, folder, running_url
from lastcall.db.embedded.binaries import find_binaries
from lastcall.db.embedded.folder import locate
from lastcall.db.embedded.runner import choose_runner
from lastcall.errors import Invalid, Unavailable
from lastcall.testing.waiting import eventually


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
    made_home: Path, number: signal.Signals, tie: tuple[str, ...]
) -> None:
    async with owned_elsewhere(made_home, *tie) as owner:
        await execute(owner.url, "create table kept as select 7 as number")
        idle = await connect(owner.url)
        owner.kill(number)
        await eventually(lambda: not is_running(owner.server_pid), within=START)
        await owner.process.wait()
        idle.terminate()
    log = locate(made_home, choose_runner()).log.read_text()
    assert "database system is shut down" in log.splitlines()[-1]
    async with EmbeddedServer(made_home) as server:
        assert await value(server.url, "select number from kept") == 7
    assert "was not properly shut down" not in log


@pytest.mark.kill
async def test_a_start_right_after_the_owner_was_killed_waits_for_the_old_server(made_home: Path) -> None:
    async with owned_elsewhere(made_home) as owner:
        await execute(owner.url, "create table kept as select 7 as number")
        owner.kill(signal.SIGKILL)
        await owner.process.wait()
        async with EmbeddedServer(made_home) as server:
            assert await value(server.url, "select number from kept") == 7
            assert server.pid != owner.server_pid


@pytest.mark.kill
async def test_a_server_that_was_itself_killed_recovers_at_the_next_start(made_home: Path) -> None:
    async with EmbeddedServer(made_home) as server:
        await execute(server.url, "create table kept as select 7 as number")
        os.kill(server.pid, signal.SIGKILL)
        await eventually(lambda: not is_running(server.pid))
    async with EmbeddedServer(made_home) as server:
        assert await value(server.url, "select number from kept") == 7


async def test_a_second_start_names_the_process_that_holds_the_folder(made_home: Path) -> None:
    async with owned_elsewhere(made_home) as owner:
        with pytest.raises(Unavailable, match=f"already in use by process {owner.process.pid}") as caught:
            async with EmbeddedServer(made_home):
                pytest.fail("it started")
        assert caught.value.code == "embedded_folder_held"
        assert await value(owner.url, "select 1") == 1
        assert running_url(made_home) == owner.url
    await eventually(lambda: running_url(made_home) is None)


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


async def test_data_of_another_major_version_is_refused_with_the_way_out(made_home: Path) -> None:
    async with EmbeddedServer(made_home):
        pass
    version = locate(made_home, choose_runner()).data / "PG_VERSION"
    version.write_text("14\n")
    with pytest.raises(Invalid, match="written by PostgreSQL 14") as caught:
        async with EmbeddedServer(made_home):
            pytest.fail("it started")
    assert "an installed PostgreSQL 14 (LASTCALL_POSTGRES_BIN)" in caught.value.advice
    version.unlink()
    with pytest.raises(Invalid, match="PG_VERSION is missing"):
        async with EmbeddedServer(made_home):
            pytest.fail("it started")


async def test_a_first_start_that_was_interrupted_begins_anew(home: Path) -> None:
    place = locate(home, choose_runner())
    folder.prepare(place)
    folder.partial(place).mkdir()
    (folder.partial(place) / "PG_VERSION").write_text("18\n")
    async with EmbeddedServer(home) as server:
        assert await value(server.url, "select 1") == 1
    assert not folder.partial(place).exists()


async def test_a_server_that_does_not_start_says_why(made_home: Path) -> None:
    with pytest.raises(Unavailable, match=r'did not start: .*"shared_buffers"'):
        async with EmbeddedServer(made_home, settings={"shared_buffers": "nonsense"}):
            pytest.fail("it started")
    async with EmbeddedServer(made_home) as server:
        assert await value(server.url, "select 1") == 1


async def test_a_start_is_not_blamed_for_what_an_earlier_one_said(made_home: Path) -> None:
    place = locate(made_home, choose_runner())
    place.log.write_text("2026-01-01 00:00:00.000 UTC [7] FATAL:  the dog ate it\n")
    with pytest.raises(Unavailable, match=r'did not start: .*"shared_buffers"'):
        async with EmbeddedServer(made_home, settings={"shared_buffers": "nonsense"}):
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
    place = locate(home, choose_runner())
    assert not folder.partial(place).exists()
    assert not place.data.exists()


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


async def test_the_socket_is_private_and_the_password_is_asked_for(made_home: Path) -> None:
    async with EmbeddedServer(made_home) as server:
        place = server.folder
        assert stat.S_IMODE(place.socket_folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(place.path.stat().st_mode) == 0o700
        assert stat.S_IMODE(place.password.stat().st_mode) == 0o600
        assert await value(server.url, "show listen_addresses") == ""
        with pytest.raises(Unavailable, match="refused this user or password"):
            await connect(server.url.replace("lastcall:", "lastcall:x"))
