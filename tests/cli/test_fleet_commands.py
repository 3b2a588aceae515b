"""The fleet on the command line: accounts come, work, rest and leave."""

from __future__ import annotations

from tests.cli.conftest import Say

GROUP = "grp_00000000-0000-4000-8000-000000000001"


def listed(say: Say, alias: str) -> str:
    (line,) = [line for line in say("account", "list").output.splitlines() if f"  {alias} " in line]
    return line


def test_a_new_account_waits_until_it_is_said_to_be_ready(say: Say) -> None:
    assert "There is no account yet" in say("account", "list").output
    added = say("account", "add", "porter", "usr_1")
    assert "lastcall account ready porter" in added.output
    assert "provisioning" in listed(say, "porter")
    assert say("account", "ready", "porter").exit_code == 0
    assert " ready " in listed(say, "porter")


def test_an_account_is_stopped_and_let_go_on(say: Say) -> None:
    say("account", "add", "porter", "usr_1")
    say("account", "ready", "porter")
    assert say("account", "stop", "porter").exit_code == 0
    assert "stopped" in listed(say, "porter")
    assert say("account", "go", "porter").exit_code == 0
    assert " ready " in listed(say, "porter")
    assert (say("fleet", "stop").exit_code, say("fleet", "go").exit_code) == (0, 0)


def test_an_accounts_limits_are_set_one_by_one(say: Say) -> None:
    say("account", "add", "porter", "usr_1")
    first = say("account", "limit", "porter", "--requests", "60")
    assert "60 requests a minute, 1000 writes a day, 100 clubs of which 15 are kept free" in first.output
    second = say("account", "limit", "porter", "--writes", "70", "--capacity", "4", "--headroom", "1")
    assert "60 requests a minute, 70 writes a day, 4 clubs of which 1 are kept free" in second.output
    refused = say("account", "limit", "porter", "--requests", "0")
    assert (refused.exit_code, "out of range" in refused.output) == (1, True)
    more = say("account", "limit", "porter", "--headroom", "5")
    assert (more.exit_code, "More places would be kept free" in more.output) == (1, True)


def test_an_account_leaves_after_its_clubs_went_to_another(say: Say) -> None:
    say("person", "add", "ada@example.org")
    say("club", "add", "Night Shift", "--owner", "ada@example.org")
    for number, alias in enumerate(("old", "new"), 1):
        say("account", "add", alias, f"usr_{number}")
        say("account", "ready", alias)
    assert say("connection", "add", "night-shift", GROUP, "--account", "old").exit_code == 0
    kept = say("connection", "reassign", "night-shift")
    assert (kept.exit_code, "keeps its connections" in kept.output) == (1, True)
    retiring = say("account", "retire", "old")
    assert "old is retiring" in retiring.output
    assert "Night Shift" in retiring.output
    full = say("connection", "reassign", "night-shift", "--account", "old")
    assert (full.exit_code, "does not work at present" in full.output) == (1, True)
    assert "served by new" in say("connection", "reassign", "night-shift").output
    assert "old is retired" in say("account", "retire", "old").output
    assert "retired" in listed(say, "old")


def test_an_account_is_degraded_or_quarantined_and_comes_back(say: Say) -> None:
    say("account", "add", "porter", "usr_1")
    for command, word in (("degrade", "degraded"), ("quarantine", "quarantined")):
        assert word in say("account", command, "porter").output
        assert word in listed(say, "porter")
        assert say("account", "ready", "porter").exit_code == 0
