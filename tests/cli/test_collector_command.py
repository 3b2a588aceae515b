"""``lastcall collector`` as somebody types it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

SET = {
    "LASTCALL_ACCOUNT": "00000000000000000000000000",
    "LASTCALL_WORKER_KEY": "lck_not_a_key",
    "LASTCALL_VRCHAT_CONTACT": "ops@club.example",
    "LASTCALL_SERVER_URL": "http://127.0.0.1:9",
    "LASTCALL_VRCHAT_URL": "http://127.0.0.1:9",
}


@pytest.mark.parametrize("missing", ["LASTCALL_ACCOUNT", "LASTCALL_WORKER_KEY", "LASTCALL_VRCHAT_CONTACT"])
def test_a_missing_setting_is_named_with_where_to_get_it(command: Run, missing: str) -> None:
    given = {name: value for name, value in SET.items() if name != missing}
    ran = command("collector", "--check", **given)
    assert ran.returncode == 1
    assert f"The collector needs the setting {missing.removeprefix('LASTCALL_').lower()}." in ran.stderr
    assert f"Set {missing}." in ran.stderr


def test_a_check_without_a_session_and_without_a_terminal_says_so_and_ends_with_one(command: Run) -> None:
    ran = command("collector", "--check", **SET)
    assert ran.returncode == 1
    assert "account: The collector needs to know: VRChat user name of the account." in ran.stdout
    assert "Start it once in a terminal" in ran.stdout
    assert SET["LASTCALL_WORKER_KEY"] not in ran.stdout + ran.stderr


def test_a_check_names_each_account_that_is_not_fine(command: Run) -> None:
    south = {
        "LASTCALL_ACCOUNT_SOUTH_ID": "00000000000000000000000001",
        "LASTCALL_ACCOUNT_SOUTH_WORKER_KEY": "lck_another",
        "LASTCALL_ACCOUNT_SOUTH_USERNAME": "bot",
        "LASTCALL_ACCOUNT_SOUTH_PASSWORD": "hunter",
    }
    ran = command("collector", "--check", **SET, **south)
    first, second = ran.stdout.splitlines()
    assert ran.returncode == 1
    assert first.startswith("account: ")
    assert second.startswith("south: The connection to VRChat failed.")
    assert "hunter" not in ran.stdout + ran.stderr
