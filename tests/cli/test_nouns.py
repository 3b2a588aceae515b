"""The nouns of the command line, in this process, over a migrated database."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import text
from tests.cli.conftest import Say

from lastcall.cli import cli
from lastcall.cli.collector import ask
from lastcall.cli.running import command_body
from lastcall.db.database import Database
from lastcall.errors import Invalid

GROUP = "grp_00000000-0000-4000-8000-000000000001"
USER = "usr_00000000-0000-4000-8000-000000000001"


@pytest.fixture
def club(say: Say) -> None:
    assert say("person", "add", "ada@example.org").exit_code == 0
    assert say("club", "add", "Night Shift", "--owner", "ada@example.org").exit_code == 0


def ready(say: Say, alias: str, user: str) -> None:
    assert say("account", "add", alias, user).exit_code == 0
    assert say("account", "ready", alias).exit_code == 0


def test_an_account_shows_its_key_once_and_a_new_key_replaces_it(say: Say) -> None:
    added = say("account", "add", "porter", USER)
    assert "LASTCALL_ACCOUNT=" in added.output
    first = added.output.split("LASTCALL_WORKER_KEY=")[1].split()[0]
    assert first not in say("account", "list").output
    replaced = say("account", "rotate-key", "porter")
    assert "LASTCALL_WORKER_KEY=" in replaced.output
    assert first not in replaced.output
    assert say("account", "revoke-key", "porter").exit_code == 0
    assert say("account", "rotate-key", "nobody").exit_code == 1


def test_a_club_is_connected_to_its_group(say: Say, club: None) -> None:
    assert "No club is connected yet" in say("connection", "list").output
    ready(say, "porter", USER)
    wrong = say("connection", "add", "night-shift", GROUP, "--account", "porter", "--feature", "dancing")
    assert (wrong.exit_code, "no feature dancing" in wrong.output) == (1, True)
    assert say("connection", "add", "no-club", GROUP, "--account", "porter").exit_code == 1
    assert say("connection", "add", "night-shift", GROUP, "--account", "porter").exit_code == 0
    assert "Night Shift" in say("connection", "list").output
    restored = say("db", "restored", "--yes")
    assert "1 connection starts a new epoch" in restored.output


def test_a_limit_counts_only_where_no_lower_one_is(say: Say, club: None) -> None:
    ready(say, "porter", USER)
    unconnected = say("connection", "limit", "night-shift", "20")
    assert (unconnected.exit_code, "not connected" in unconnected.output) == (1, True)
    say("connection", "add", "night-shift", GROUP, "--account", "porter")
    assert "20 requests a minute" in say("connection", "limit", "night-shift", "20").output
    assert "60 requests a minute" in say("fleet", "limit", "60").output
    assert (
        say("fleet", "limit", "0").exit_code,
        say("connection", "limit", "night-shift", "0").exit_code,
    ) == (1, 1)


def test_restored_asks_first(say: Say) -> None:
    declined = say("db", "restored")
    assert declined.exit_code == 1
    assert "Was the database restored from a backup?" in declined.output


def test_the_schema_is_written_without_data(say: Say, club: None, tmp_path: Path) -> None:
    assert say("db", "dump", str(tmp_path / "schema.sql")).exit_code == 0
    text = (tmp_path / "schema.sql").read_text()
    assert "operation_requests" in text
    assert "ada@example.org" not in text


@pytest.mark.parametrize("asked", [["db", "dump"], ["club", "export", "night-shift", "--to"]])
def test_a_file_that_cannot_be_written_is_named(
    say: Say, club: None, tmp_path: Path, asked: list[str]
) -> None:
    refused = say(*asked, str(tmp_path / "nowhere" / "file"))
    assert (refused.exit_code, "nowhere/file cannot be written: No such file" in refused.output) == (1, True)


async def test_a_row_that_somebody_else_holds_is_a_sentence_and_no_trace(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lastcall.cli.running.set_up_logs", lambda: None)

    @command_body
    async def want() -> None:
        other = await Database.open(database.url)
        try:
            async with other.transaction() as tx:
                await tx.execute(text("lock table people in share mode nowait"))
        finally:
            await other.close()

    async with database.transaction() as tx:
        await tx.raw.execute("lock table people in exclusive mode")
        with pytest.raises(SystemExit) as ended:
            await asyncio.to_thread(want)
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(
        "lastcall: Somebody else is changing the same thing right now.\n"
    )


def test_a_database_of_ones_own_is_migrated_when_it_is_said(
    say: Say, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"DATABASE_URL": empty_database_url}
    behind = CliRunner().invoke(cli, ["person", "add", "ada@example.org"], env=environment)
    assert behind.exit_code == 1
    assert "lastcall db migrate" in behind.output
    assert CliRunner().invoke(cli, ["db", "migrate"], env=environment).exit_code == 0
    assert CliRunner().invoke(cli, ["person", "add", "ada@example.org"], env=environment).exit_code == 0


def test_a_collector_without_account_or_key_says_which_setting_is_missing(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LASTCALL_VRCHAT_CONTACT", "ops@club.example")
    refused = say("collector")
    assert refused.exit_code == 1
    assert "LASTCALL_ACCOUNT" in refused.output


def test_a_collector_without_a_contact_is_told_what_it_is_for(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LASTCALL_ACCOUNT", "x")
    monkeypatch.setenv("LASTCALL_WORKER_KEY", "y")
    refused = say("collector")
    assert (refused.exit_code, "LASTCALL_VRCHAT_CONTACT" in refused.output) == (1, True)
    assert "account add" not in refused.output


async def test_a_collector_without_a_terminal_does_not_wait_for_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(Invalid, match="There is no terminal to ask at"):
        await ask("account", "password")


def test_a_club_goes_through_its_life_by_command(say: Say, club: None) -> None:
    assert "Night Shift" in say("club", "list").output
    assert "no such club" in say("club", "list", "--search", "day").output
    for verb, state in (
        ("pause", "paused"),
        ("resume", "active"),
        ("archive", "archived"),
        ("unarchive", "active"),
    ):
        assert say("club", verb, "night-shift").exit_code == 0
        assert state in say("club", "show", "night-shift").output
    refused = say("club", "resume", "night-shift")
    assert (refused.exit_code, "is active" in refused.output) == (1, True)
    assert say("club", "pause", "no-club").exit_code == 1


def test_a_club_is_given_away_and_its_owner_made_by_command(say: Say, club: None) -> None:
    say("person", "add", "bea@example.org", "--name", "Bea")
    wrong = say("club", "transfer", "night-shift", "bea@example.org", "--keep-role", "Dancer")
    assert (wrong.exit_code, "no role “Dancer”" in wrong.output) == (1, True)
    assert say("club", "transfer", "night-shift", "bea@example.org", "--keep-role", "Admin").exit_code == 0
    assert "Bea" in say("club", "show", "night-shift").output
    made = say("club", "add", "Day Shift", "--owner", "new@example.org")
    assert (made.exit_code, "sign-in-link new@example.org" in made.output) == (0, True)


def test_a_club_is_deleted_by_command_with_all_its_rows(say: Say, club: None) -> None:
    assert say("club", "delete", "night-shift", "--confirm", "night-shift").exit_code == 1
    say("club", "archive", "night-shift")
    assert say("club", "delete", "night-shift", "--confirm", "other").exit_code == 1
    assert say("club", "delete", "night-shift", "--confirm", "night-shift").exit_code == 0
    assert "There is no club yet" in say("club", "list").output
    assert say("club", "add", "Night Shift", "--owner", "ada@example.org").exit_code == 0, "its name is free"
