"""The pure parts of the pages: pasted people, times, tallies, cursors."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.web.conftest import user

from lastcall.db.cursor import Cursor
from lastcall.errors import Invalid
from lastcall.operations.codes import REASONS
from lastcall.operations.kinds import KINDS
from lastcall.operations.machine import State
from lastcall.web import looks
from lastcall.web.assets import STATIC, Assets
from lastcall.web.events import Touched
from lastcall.web.recipients import MOST, read_recipients
from lastcall.web.scheduled import PROGRESS_WIDTH, read_place, tally_of, write_place
from lastcall.web.times import Zoned, day_title, relative, zone_named

NOW = datetime(2026, 12, 1, 20, 0, tzinfo=UTC)


def test_ids_profile_addresses_and_names_on_a_line_are_understood() -> None:
    text = f"{user(1)}\n\n  Neon Fox — {user(2).upper().replace('USR_', 'usr_')}\nhttps://vrchat.com/home/user/{user(3)}\n"
    read = read_recipients(text)
    assert [person.user_id for person in read.people] == [user(1), user(2), user(3)]
    assert [person.label for person in read.people] == ["", "Neon Fox", ""]
    assert read.problems == ()


def test_each_wrong_line_is_named_with_its_number() -> None:
    read = read_recipients(f"{user(1)}\nnobody\n{user(2)} {user(3)}\n{user(1)}")
    assert [(problem.line, problem.sentence.split(":")[0]) for problem in read.problems] == [
        (2, "There is no VRChat user id here"),
        (3, "There is more than one user id here"),
    ]
    assert [(line.line, line.sentence) for line in read.repeated] == [(4, "This repeats line 1.")]
    assert [person.user_id for person in read.people] == [user(1)]


@pytest.mark.parametrize(("most", "given_people"), [(MOST, MOST + 1), (1, 2)])
def test_too_many_people_are_refused_and_not_cut_off(most: int, given_people: int) -> None:
    read = read_recipients("\n".join(user(n) for n in range(given_people)), most)
    assert len(read.problems) == 1
    assert read.problems[0].line == most + 1


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    read = read_recipients(text)
    assert len(read.people) + len(read.problems) <= len(text.splitlines()) + 1


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (NOW + timedelta(seconds=3), "now"),
        (NOW + timedelta(seconds=59), "in under a minute"),
        (NOW + timedelta(minutes=12, seconds=59), "in 12 min"),
        (NOW - timedelta(hours=3, minutes=59), "3 h ago"),
        (NOW + timedelta(days=1), "in 1 day"),
        (NOW - timedelta(days=90), "90 days ago"),
    ],
)
def test_relative_times_round_down(moment: datetime, words: str) -> None:
    assert relative(moment, NOW) == words


def test_days_are_the_viewers_days() -> None:
    """Half past eleven in the evening in London is tomorrow in Berlin."""
    late = datetime(2026, 12, 1, 23, 30, tzinfo=UTC)
    berlin, london = zone_named("Europe/Berlin"), zone_named("Europe/London")
    assert berlin is not None
    assert london is not None
    assert (Zoned(berlin, NOW).day(late), Zoned(london, NOW).day(late)) == ("Tomorrow", "Today")
    assert day_title(date(2026, 12, 5), date(2026, 12, 1)) == "Saturday 5 December"
    assert day_title(date(2027, 1, 2), date(2026, 12, 1)) == "Saturday 2 January 2027"


@pytest.mark.parametrize("name", [None, "", "Mars/Olympus", "../../etc/passwd", "x" * 500, "\0"])
def test_a_zone_cookie_can_say_anything(name: str | None) -> None:
    assert zone_named(name) is None


@given(
    st.dictionaries(st.sampled_from(State), st.integers(0, 100), min_size=1).filter(lambda d: sum(d.values()))
)
def test_a_tally_loses_nobody_and_its_bar_fits(counts: dict[State, int]) -> None:
    tally = tally_of(counts)
    parts = (tally.done, tally.failed, tally.unknown, tally.moving, tally.stopped, tally.to_go)
    assert sum(parts) == tally.total
    assert min(parts) >= 0
    assert sum(bar.width for bar in tally.bars) <= PROGRESS_WIDTH + 0.1


PLACE = write_place(
    SimpleNamespace(due_at=datetime(1970, 1, 1, 0, 0, 0, 1, UTC), id=UUID(int=1), request_id=UUID(int=2))
)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["x", "1.2.3", ".", PLACE[1:], PLACE[:-1], PLACE + "0", PLACE.partition(".")[0]]
)
def test_a_place_in_the_agenda_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        read_place(text)


def test_a_place_in_the_agenda_keeps_microseconds_and_says_which_batch_was_shown() -> None:
    assert read_place("") == (None, None)
    cursor, shown = read_place(PLACE)
    assert cursor == Cursor(datetime(1970, 1, 1, 0, 0, 0, 1, UTC), UUID(int=1))
    assert shown == UUID(int=2)


def test_every_state_kind_and_code_has_words_and_a_look() -> None:
    assert set(looks.KINDS) == set(KINDS)
    for state in State:
        look = looks.state_look(state)
        assert look.word
        assert look.icon
    for code in REASONS:
        words = looks.why(code)
        assert words is not None
        assert words.label
    assert looks.state_look(State.REJECTED, "submission_not_attempted").word == "Not sent"


def test_a_checkout_that_never_built_the_page_scripts_still_has_every_page_file(tmp_path: Path) -> None:
    shutil.copytree(STATIC, tmp_path / "static", ignore=shutil.ignore_patterns("built"))
    assets = Assets(tmp_path / "static")
    assert not assets.is_complete
    assert assets.find(assets.address("style.css").rsplit("/", 1)[1]) is not None


def test_a_pasted_name_cannot_turn_the_direction_of_the_review() -> None:
    read = read_recipients(f"\u202eFox\u2066 \u0000{user(1)}")
    assert [person.label for person in read.people] == ["Fox"]


def test_what_an_event_moves_into_the_past_is_sent_at_once_until_its_grace_is_over() -> None:
    def words(ago: timedelta) -> str:
        return Touched(row, NOW - ago).passed_words(NOW)

    row: Any = None
    assert words(timedelta(minutes=-1)) == ""
    assert words(timedelta(minutes=15)) == "passed: it is sent at once"
    assert words(timedelta(minutes=15, microseconds=1)) == "passed: it would be missed"
    assert Touched(row, None).passed_words(NOW) == ""
