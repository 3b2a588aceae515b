"""A calendar made to keep the server busy, to fill its memory or to change what another calendar says does none of
that."""

from __future__ import annotations

import os
from datetime import timedelta
from time import monotonic

import pytest
from tests.events.calendars import NOW, ZONE, calendar, vevent

from lastcall.errors import Invalid
from lastcall.events.imports import child, zones
from lastcall.events.imports.child import read_calendar
from lastcall.events.imports.entries import COMPONENTS_MOST, DOCUMENT_CAP, ENTRIES_MOST, Reading

EVENING = ":20261204T200000Z"
LIMIT = 15
"""Seconds within which each is over on a busy machine; what it prevents takes hours."""


async def read(*parts: str) -> Reading:
    begun = monotonic()
    try:
        return await read_calendar(calendar(*parts), ZONE, NOW)
    finally:
        assert monotonic() - begun < LIMIT


def zone(observances: int, rule: str) -> str:
    parts = [
        f"BEGIN:{kind}\nDTSTART:19700101T{n % 24:02}{n % 60:02}00\nTZOFFSETFROM:+0{n % 2}00\n"
        f"TZOFFSETTO:+0{1 - n % 2}00\n{rule}\nEND:{kind}"
        for n, kind in enumerate(["STANDARD", "DAYLIGHT"] * (observances // 2))
    ]
    return "\n".join(["BEGIN:VTIMEZONE", "TZID:Bomb", *parts, "END:VTIMEZONE"])


TOKYO = """BEGIN:VTIMEZONE
TZID:Theirs
BEGIN:STANDARD
DTSTART:19700101T000000
TZOFFSETFROM:+0900
TZOFFSETTO:+0900
END:STANDARD
END:VTIMEZONE"""
IN_ZONE = vevent("1", ";TZID=Bomb:20261204T200000")
EVERY_MINUTE = ",".join(
    f"2026{m:02}{d:02}T{h:02}{n:02}00Z"
    for m in range(1, 13)
    for d in range(1, 9)
    for h in range(24)
    for n in range(0, 60, 5)
)


@pytest.mark.parametrize(
    "rule",
    [
        "RRULE:FREQ=SECONDLY",
        "RRULE:FREQ=SECONDLY;COUNT=999999999",
        "RRULE:FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
        "RRULE:FREQ=MINUTELY;UNTIL=99991231T000000Z",
        "RRULE:FREQ=DAILY;BYHOUR="
        + ",".join(map(str, range(24)))
        + ";BYMINUTE="
        + ",".join(map(str, range(60))),
        "RRULE:FREQ=DAILY;COUNT=999999999",
        "RRULE:FREQ=YEARLY;INTERVAL=999999999",
    ],
)
async def test_a_rule_that_repeats_without_end_is_an_entry_that_cannot_be_read(rule: str) -> None:
    found = await read(vevent("bomb", ":19700101T000000Z", rule), vevent("good", EVENING))
    assert {one.key: one.problem is None for one in found.entries} == {"bomb": False, "good": True}


async def test_many_series_with_many_dates_come_to_the_next_few_of_them() -> None:
    found = await read(*(vevent(str(n), EVENING, "RRULE:FREQ=DAILY") for n in range(COMPONENTS_MOST - 1)))
    assert len(found.entries) == ENTRIES_MOST


async def test_old_series_whose_dates_must_be_counted_are_counted_in_time_or_refused() -> None:
    """A rule with a COUNT is walked over from its first day: here 41 million days."""
    parts = (
        vevent(str(n), ":19700101T000000Z", "RRULE:FREQ=DAILY;COUNT=100000")
        for n in range(COMPONENTS_MOST - 1)
    )
    with pytest.raises(Invalid, match="too long"):
        await read_calendar(calendar(*parts), ZONE, NOW, within=timedelta(seconds=2))


async def test_floods_of_single_dates_come_to_the_next_few_of_them() -> None:
    found = await read(
        vevent("1", EVENING, f"RDATE:{EVERY_MINUTE}", f"EXDATE:{EVERY_MINUTE[:100_000].rpartition(',')[0]}")
    )
    assert len(found.entries) == ENTRIES_MOST


@pytest.mark.parametrize(
    "definition",
    [
        zone(1900, "RRULE:FREQ=YEARLY"),
        zone(90, "RRULE:FREQ=SECONDLY"),
        zone(2, f"RDATE:{EVERY_MINUTE[:20_000].rpartition(',')[0].replace('Z', '')}"),
    ],
)
async def test_a_zone_of_thousands_of_changes_is_not_worked_out(definition: str) -> None:
    (one,) = (await read(definition, IN_ZONE)).entries
    assert one.problem == "Its time zone is defined with more changes than any real one has."


async def test_twin_without_the_check_of_zones_the_process_is_ended_by_its_clock(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """What is left when a bound was forgotten: the reading process ends, and nothing else is touched."""
    (hook := tmp_path / "sitecustomize.py").write_text(  # type: ignore[operator]
        "import lastcall.events.imports.zones as zones\nzones._check = lambda _: None\n"
    )
    paths = (
        [str(hook.parent), os.environ["PYTHONPATH"]]
        if "PYTHONPATH" in os.environ
        else [str(hook.parent), "src"]
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    begun = monotonic()
    with pytest.raises(Invalid, match="too long"):
        await read_calendar(
            calendar(zone(90, "RRULE:FREQ=SECONDLY"), IN_ZONE), ZONE, NOW, within=timedelta(seconds=2)
        )
    assert 1 < monotonic() - begun < LIMIT
    assert zones._check is not None


async def test_more_parts_than_a_calendar_has_are_refused_before_they_are_read() -> None:
    nested = ["BEGIN:VEVENT"] * (COMPONENTS_MOST + 1) + ["END:VEVENT"] * (COMPONENTS_MOST + 1)
    with pytest.raises(Invalid, match="more than 2000 parts"):
        await read("\n".join(nested))
    folded = ["BEGIN\n :VEVENT", "END:VEVENT"] * (COMPONENTS_MOST + 1)
    with pytest.raises(Invalid, match="more than 2000 parts"):
        await read("\n".join(folded))


async def test_parts_within_parts_to_the_last_one_allowed_are_read_or_refused() -> None:
    deep = ["BEGIN:VEVENT"] * (COMPONENTS_MOST - 1) + ["END:VEVENT"] * (COMPONENTS_MOST - 1)
    assert len((await read("\n".join(deep))).entries) <= 1


async def test_a_calendar_over_the_cap_is_refused_before_a_process_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: object) -> bytes:
        raise AssertionError("it was started")

    monkeypatch.setattr(child, "_run", fail)
    with pytest.raises(Invalid, match="larger than 1024 KiB"):
        await read_calendar(b"x" * (DOCUMENT_CAP + 1), ZONE, NOW)


async def test_a_zone_of_one_calendar_is_no_zone_of_the_next() -> None:
    """The library keeps what a calendar defines; its process does not live for another."""
    part = vevent("1", ";TZID=Theirs:20261204T200000")
    (defined,), (unknown,) = (await read(TOKYO, part)).entries, (await read(part)).entries
    assert (defined.starts_at, unknown.starts_at) != (None, None)
    assert defined.starts_at != unknown.starts_at
    assert "is unknown" in unknown.notes[0]


async def test_the_reading_process_knows_none_of_the_server_s_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LASTCALL_DATABASE_URL", "postgresql://secret")
    seen: dict[str, str] = {}
    start = child.asyncio.create_subprocess_exec

    async def record(*arguments: str, env: dict[str, str], **others: object) -> object:
        seen.update(env)
        return await start(*arguments, env=env, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(child.asyncio, "create_subprocess_exec", record)
    await read(vevent("1", EVENING))
    assert "PATH" in seen
    assert not any("secret" in value for value in seen.values())
