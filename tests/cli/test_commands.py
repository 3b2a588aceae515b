"""Commands given wrongly say so in one sentence; given rightly they do what their help says."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from lastcall.db.embedded import running_url

Start = Callable[..., "subprocess.Popen[str]"]
Command = Callable[..., "subprocess.CompletedProcess[str]"]


def assert_one_sentence(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    """Status 1, nothing on stdout, no traceback: one sentence and at most one line of advice."""
    assert result.returncode == 1, result.stderr
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) <= 2, result.stderr
    assert lines[0].startswith("lastcall: ")
    for part in parts:
        assert part in result.stderr


def test_an_unknown_setting_stops_every_command_before_it_does_anything(
    command: Command, tmp_path: Path
) -> None:
    result = command("serve", LASTCALL_PROT="1")
    assert_one_sentence(result, "LASTCALL_PROT", "nearest one is LASTCALL_PORT")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://localhost/club", "DATABASE_URL"),
        ("postgresql://nobody:wrong@127.0.0.1:1/club", "127.0.0.1"),
        ("not an address", "DATABASE_URL"),
    ],
)
def test_a_wrong_database_address_is_one_sentence_and_never_shows_its_password(
    command: Command, url: str, says: str
) -> None:
    result = command("serve", "--port", "0", DATABASE_URL=url)
    assert_one_sentence(result, says)
    assert "wrong@" not in result.stderr


def test_a_port_in_use_is_named_and_nothing_is_started(command: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = command("serve", "--port", str(port))
    assert_one_sentence(result, f"Port {port} on 127.0.0.1 is in use", "LASTCALL_PORT")
    assert not (tmp_path / "home").exists()


def test_a_data_folder_with_foreign_files_is_refused_and_left_alone(command: Command, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "PG_VERSION").write_text("15\n")
    result = command("serve", "--port", "0")
    assert_one_sentence(result, str(home), "LASTCALL_HOME")
    assert [path.name for path in home.iterdir()] == ["PG_VERSION"]


def test_a_wrong_option_is_status_two(command: Command) -> None:
    result = command("serve", "--prot", "1")
    assert result.returncode == 2
    assert "--prot" in result.stderr


def read_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    while line and text not in line:
        line = process.stdout.readline()
    assert text in line, process.stderr.read() if process.stderr else ""
    return line


@pytest.mark.kill
def test_first_steps_while_the_server_runs_and_its_clean_end(start: Start, command: Command) -> None:
    """The way of the docs: serve, add oneself, get a link; a second server on the folder is told who
    holds it.
    """
    server = start("serve", "--port", "0")
    read_until(server, "Lastcall is at")
    added = command("person", "add", "ada@example.org", "--operator")
    assert (added.returncode, added.stderr) == (0, "")
    link = command("sign-in-link", "ADA@example.org")
    assert "/sign-in/" in link.stdout
    club = command("club", "add", "Night Shift", "--owner", "ada@example.org", "--zone", "Europe/Berlin")
    assert "/c/night-shift" in club.stdout
    assert_one_sentence(command("club", "add", "Other", "--owner", "nobody"), "nobody")
    assert_one_sentence(command("serve", "--port", "0"), str(server.pid))

    server.terminate()
    assert server.wait(timeout=30) == 0
    again = start("serve", "--port", "0")
    read_until(again, "Lastcall is at")
    assert_one_sentence(command("person", "add", "ada@example.org"), "exists already")


@pytest.mark.kill
def test_a_server_whose_embedded_database_was_killed_ends_with_one_sentence(
    start: Start, tmp_path: Path
) -> None:
    """Whoever supervises it starts both again; a server that stays without its database would answer 503 for ever."""
    server = start("serve", "--port", "0")
    read_until(server, "Lastcall is at")
    url = running_url(tmp_path / "home")
    assert url is not None
    (socket_folder,) = parse_qs(urlsplit(url).query)["host"]
    (lock,) = Path(socket_folder).glob(".s.PGSQL.*.lock")
    os.kill(int(lock.read_text().split()[0]), signal.SIGKILL)
    assert server.wait(timeout=30) == 1
    assert server.stderr is not None
    said = server.stderr.read()
    assert "lastcall: The embedded database ended by itself" in said
    assert "Traceback" not in said
