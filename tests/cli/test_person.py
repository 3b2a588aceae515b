"""``lastcall person``, in this process, over a migrated database and a mail server that keeps what it gets."""

from __future__ import annotations

import re

from tests.cli.conftest import Say


def test_a_person_is_added_shown_blocked_and_let_in_again(say: Say) -> None:
    assert "Nobody yet" in say("person", "list").output
    assert say("person", "add", "ada@example.org", "--operator").exit_code == 0
    assert say("person", "add", "bob@example.org", "--name", "Bob").exit_code == 0
    listed = say("person", "list").output.splitlines()
    assert [line.split()[0] for line in listed] == ["bob@example.org", "ada@example.org"]
    assert listed[1].endswith("operator")
    assert "ada" not in say("person", "list", "--search", "BOB").output
    assert say("person", "block", "bob@example.org").exit_code == 0
    shown = say("person", "show", "bob@example.org").output
    assert "blocked" in shown
    assert "person.blocked  by the server" in shown
    assert say("sign-in-link", "bob@example.org").exit_code == 1
    assert say("person", "unblock", "bob@example.org").exit_code == 0
    assert say("sign-in-link", "bob@example.org").exit_code == 0
    assert say("person", "operator", "bob@example.org").exit_code == 0
    assert "operator" in say("person", "list", "--search", "bob").output
    assert say("person", "operator", "bob@example.org", "--remove").exit_code == 0
    unknown = say("person", "show", "nobody@example.org")
    assert (unknown.exit_code, "lastcall person add" in unknown.output) == (1, True)


def test_recovering_asks_first_and_prints_one_link(say: Say) -> None:
    say("person", "add", "ada@example.org")
    asked = say("person", "recover", "ada@example.org", typed="n\n")
    assert (asked.exit_code, "/sign-in/" in asked.output) == (1, False)
    done = say("person", "recover", "ada@example.org", "--yes")
    assert done.exit_code == 0
    assert len(re.findall(r"http://localhost:8420/sign-in/\S{43}", done.output)) == 1


def test_a_person_is_moved_to_another_address(say: Say) -> None:
    say("person", "add", "ada@example.org")
    say("person", "add", "bob@example.org")
    assert say("person", "move", "ada@example.org", "bob@example.org").exit_code == 1
    assert say("person", "move", "ada@example.org", "ada@new.example").exit_code == 0
    assert "not confirmed" in say("person", "show", "ada@new.example").output
