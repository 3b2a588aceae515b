"""A collector's further accounts come from tables and the environment, and a wrong one stops the start with its
name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lastcall.collector.config import config_from
from lastcall.errors import Invalid
from lastcall.settings import load

TABLES = """
vrchat_contact = "ops@club.example"

[accounts.north]
id = "0000000000000000000000000n"
worker_key = "from the file"
username = "north-bot"
password = "hunter"

[accounts.south]
id = "0000000000000000000000000s"
"""
SOUTH = {"LASTCALL_ACCOUNT_SOUTH_WORKER_KEY": "hidden"}
PLAIN = {"LASTCALL_ACCOUNT": "0000000000000000000000000p", "LASTCALL_WORKER_KEY": "plain"}


def test_tables_and_the_environment_make_accounts_beside_the_plain_one(tmp_path: Path) -> None:
    (tmp_path / "lastcall.toml").write_text(TABLES)
    settings = load(SOUTH | PLAIN | {"LASTCALL_ACCOUNT_NORTH_WORKER_KEY": "hidden too"}, tmp_path)
    assert [(account.name, account.worker_key) for account in settings.accounts] == [
        ("north", "hidden too"),
        ("south", "hidden"),
    ]
    plain, north, south = config_from(settings).accounts
    assert (plain.name, plain.account_id, plain.worker_key) == (
        "account",
        "0000000000000000000000000p",
        "plain",
    )
    assert north.credentials is not None
    assert (north.name, north.credentials.username) == ("north", "north-bot")
    assert south.credentials is None
    for secret in ("hidden", "hunter", "from the file"):
        assert secret not in repr(settings)
        assert secret not in repr(config_from(settings))


def test_with_tables_no_plain_account_is_needed(tmp_path: Path) -> None:
    (tmp_path / "lastcall.toml").write_text(TABLES)
    assert [account.name for account in config_from(load(SOUTH, tmp_path)).accounts] == ["north", "south"]


@pytest.mark.parametrize("given", ["LASTCALL_ACCOUNT", "LASTCALL_WORKER_KEY"])
def test_half_a_plain_account_is_refused_beside_tables_too(tmp_path: Path, given: str) -> None:
    (tmp_path / "lastcall.toml").write_text(TABLES)
    with pytest.raises(Invalid, match="The collector needs the setting"):
        config_from(load(SOUTH | {given: PLAIN[given]}, tmp_path))


@pytest.mark.parametrize("given", ["LASTCALL_VRCHAT_USERNAME", "LASTCALL_VRCHAT_PASSWORD"])
def test_half_a_sign_in_is_refused_and_names_the_other_half(tmp_path: Path, given: str) -> None:
    contact = {"LASTCALL_VRCHAT_CONTACT": "ops@club.example"}
    with pytest.raises(Invalid, match="both vrchat_username and vrchat_password") as refused:
        config_from(load(PLAIN | contact | {given: "hunter"}, tmp_path))
    assert refused.value.field in {"vrchat_username", "vrchat_password"} - {
        given.removeprefix("LASTCALL_").lower()
    }


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("SOUTH_WORKER_KYE", "k", "An account has no setting LASTCALL_ACCOUNT_SOUTH_WORKER_KYE"),
        ("SOUTH_WORKER_KYE", "k", "nearest one is worker_key"),
        ("OTHER_ID", "0", "The account other has no worker_key"),
        ("SOUTH_PASSWORD", "p", "The account south needs both username and password"),
        ("NORTH_ID", " ", "LASTCALL_ACCOUNT_NORTH_ID must be text"),
        ("9_ID", "0", "must be a small letter"),
    ],
)
def test_a_wrong_account_is_refused_with_its_name(tmp_path: Path, name: str, value: str, says: str) -> None:
    (tmp_path / "lastcall.toml").write_text(TABLES)
    with pytest.raises(Invalid) as refused:
        load(SOUTH | {f"LASTCALL_ACCOUNT_{name}": value}, tmp_path)
    assert says in refused.value.sentence


def test_one_account_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lastcall.toml").write_text(TABLES)
    twice = {"LASTCALL_ACCOUNT": "0000000000000000000000000n", "LASTCALL_WORKER_KEY": "k"}
    with pytest.raises(Invalid, match="One account stands in the settings twice"):
        config_from(load(SOUTH | twice, tmp_path))


def test_accounts_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "lastcall.toml").write_text('accounts = "north"\n')
    with pytest.raises(Invalid, match=r"accounts in .* must be tables like \[accounts\.name\]"):
        load({}, tmp_path)


@pytest.mark.parametrize(
    ("port", "says"), [("70000", "must be a port from 1 to 65535"), ("x", "a whole number")]
)
def test_a_wrong_port_for_the_figures_is_refused(tmp_path: Path, port: str, says: str) -> None:
    with pytest.raises(Invalid, match=says):
        load({"LASTCALL_METRICS_PORT": port}, tmp_path)
    assert load({}, tmp_path).metrics_port is None
    assert load({"LASTCALL_METRICS_PORT": "0"}, tmp_path).metrics_port == 0
