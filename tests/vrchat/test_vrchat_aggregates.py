"""Populations and audit lines: counted, dated, and without anybody in them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import change

from lastcall.protocol.telemetry import AuditEntry, InstanceSeen
from lastcall.vrchat import aggregates, errors
from lastcall.vrchat.aggregates import MOST_INSTANCES, nameless_location, read_population
from lastcall.vrchat.audit import AUDIT_GRANT, AuditLine, read_audit_page
from lastcall.vrchat.groups import look_at_group
from lastcall.vrchat.simulator import Simulator, faults
from lastcall.vrchat.simulator.model import made_id
from lastcall.vrchat.transport import Transport

GROUP = "grp_00000000-0000-4000-8000-000000000001"
WORLD = "wrld_00000000-0000-4000-8000-000000000001"
PERSON = "usr_00000000-0000-4000-8000-000000000001"


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator(members=40, is_lively=True) as running:
        yield running


# ---------------------------------------------------------------------------------------------- populations


async def test_two_requests_count_the_members_and_the_people_in_open_instances(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    look = await look_at_group(transport, seed.group_id, seed.bot_id)
    read = await read_population(transport, seed.group_id)
    assert look.member_count == 40
    assert [(one.world_id, one.population) for one in read.value] == [
        (seed.world_ids[0], 12),
        (seed.world_ids[1], 3),
    ]
    assert len(simulator.arrivals) == 2
    for location in list(simulator.world.instances):
        change(simulator, "empty_instance", location=location)
    assert (await read_population(transport, seed.group_id)).value == ()


async def test_a_population_fits_the_workers_message(simulator: Simulator, transport: Transport) -> None:
    for one in (await read_population(transport, simulator.seed.group_id)).value:
        message = InstanceSeen(location=one.location, world_id=one.world_id, population=one.population)
        assert msgspec.json.decode(msgspec.json.encode(message), type=InstanceSeen) == message


TAGS = (f"group({GROUP})", "groupAccessType(plus)", "region(eu)", "ageGate")
PERSONAL = (
    f"hidden({PERSON})",
    f"private({PERSON.upper()})",
    "friends(8JoV9XEdpo)",
    "nonce(a-b)",
    f"owner({PERSON})",
)


@given(
    st.permutations(TAGS), st.lists(st.sampled_from(PERSONAL), unique=True), st.randoms(use_true_random=False)
)
def test_a_location_is_the_same_in_every_answer_and_names_nobody(
    tags: list[str], personal: list[str], random: Any
) -> None:
    mixed = [*tags, *personal]
    random.shuffle(mixed)
    location = nameless_location(WORLD, "~".join(["12345", *mixed]))
    assert location == f"{WORLD}:12345~ageGate~group({GROUP})~groupAccessType(plus)~region(eu)"


@pytest.mark.parametrize("name", [PERSON, f"x{PERSON.upper()}", "Usr_1"])
def test_an_instance_named_after_a_person_is_not_counted(name: str) -> None:
    with pytest.raises(errors.SchemaDrift):
        nameless_location(WORLD, f"{name}~group({GROUP})")


def test_twin_with_the_form_of_ids_alone_a_legacy_id_of_a_person_stays_in_the_location(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aggregates, "PERSONAL_TAGS", frozenset())
    assert "8JoV9XEdpo" in nameless_location(WORLD, f"12345~friends(8JoV9XEdpo)~group({GROUP})")


def row(number: int, group_id: str, **more: Any) -> dict[str, Any]:
    return {
        "instanceId": f"{number}~group({group_id})",
        "location": f"{WORLD}:{number}~group({group_id})",
        "memberCount": 1,
        "world": {"id": WORLD, "name": "Bar"},
    } | more


async def test_other_groups_doubles_and_endless_lists_are_no_sample(
    simulator: Simulator, transport: Transport
) -> None:
    group_id = simulator.seed.group_id
    other = made_id("grp", "other")
    refused: list[tuple[list[dict[str, Any]], type[errors.ProviderFault]]] = [
        ([row(1, group_id), row(2, other)], errors.ProviderScope),
        ([row(1, group_id, instanceId="1~region(eu)")], errors.ProviderScope),
        ([row(1, group_id, instanceId=f"1~group({group_id})~group({other})")], errors.ProviderScope),
        ([row(1, group_id), row(1, group_id)], errors.SchemaDrift),
        (
            [
                row(1, group_id, instanceId=f"1~region(eu)~group({group_id})"),
                row(1, group_id, instanceId=f"1~group({group_id})~region(eu)~hidden({PERSON})"),
            ],
            errors.SchemaDrift,
        ),
        ([row(number, group_id) for number in range(MOST_INSTANCES + 1)], errors.SchemaDrift),
        ([row(1, group_id, memberCount=None)], errors.SchemaDrift),
        ([row(1, group_id, memberCount="12")], errors.SchemaDrift),
    ]
    for rows, raised in refused:
        simulator.arm(faults.say(msgspec.json.encode(rows).decode()), path="*/instances")
        with pytest.raises(errors.ProviderFault) as caught:
            await read_population(transport, group_id)
        assert type(caught.value) is raised, rows[:2]
    most = [row(number, group_id) for number in range(MOST_INSTANCES)]
    simulator.arm(faults.say(msgspec.json.encode(most).decode()), path="*/instances")
    assert len((await read_population(transport, group_id)).value) == MOST_INSTANCES


# --------------------------------------------------------------------------------------------- the audit log


def written(simulator: Simulator, count: int, event: str = "group.member.join") -> datetime:
    """Replace the log by ``count`` lines, one a minute, the newest ten minutes old. The moment of the oldest."""
    group = simulator.world.groups[simulator.seed.group_id]
    group.audit.clear()
    newest = simulator.clock.wall().replace(microsecond=0) - timedelta(minutes=10)
    oldest = newest - timedelta(minutes=count - 1)
    for number in range(count):
        at = oldest + timedelta(minutes=number)
        group.note(at, event, group.owner_id, simulator.seed.members[0], "Member 1 did something")
    return oldest


async def test_a_window_is_read_to_its_end_page_by_page_and_each_line_once(
    simulator: Simulator, transport: Transport
) -> None:
    oldest = written(simulator, 250)
    starts_at, ends_at = oldest, oldest + timedelta(minutes=245)
    lines: list[AuditLine] = []
    offset, is_last = 0, False
    while not is_last:
        page = (await read_audit_page(transport, simulator.seed.group_id, starts_at, ends_at, offset)).value
        lines += page.lines
        offset, is_last = offset + page.raw_count, page.is_last
    assert len(simulator.arrivals) == 3
    assert offset == 246, "VRChat counts the end in, which belongs to the next window"
    assert [line.at for line in lines] == [
        oldest + timedelta(minutes=number) for number in range(244, -1, -1)
    ]
    assert len({line.entry_id for line in lines}) == 245


async def test_an_audit_line_says_what_and_when_and_not_who(
    simulator: Simulator, transport: Transport
) -> None:
    oldest = written(simulator, 1)
    read = await read_audit_page(transport, simulator.seed.group_id, oldest, oldest + timedelta(seconds=1), 0)
    (line,) = read.value.lines
    assert (line.at, line.event) == (oldest, "group.member.join")
    assert "usr_" not in repr(line)
    assert "Member" not in repr(line)
    message = AuditEntry(entry_id=line.entry_id, at=line.at, event=line.event)
    assert msgspec.json.decode(msgspec.json.encode(message), type=AuditEntry) == message


async def test_a_window_in_another_zone_is_the_same_window(
    simulator: Simulator, transport: Transport
) -> None:
    oldest = written(simulator, 3)
    there = timezone(timedelta(hours=-9, minutes=-30))
    starts_at, ends_at = (at.astimezone(there) for at in (oldest, oldest + timedelta(minutes=1)))
    page = (await read_audit_page(transport, simulator.seed.group_id, starts_at, ends_at, 0)).value
    assert [line.at for line in page.lines] == [oldest]


async def test_events_of_an_odd_form_are_left_out_and_still_counted(
    simulator: Simulator, transport: Transport
) -> None:
    oldest = written(simulator, 3)
    group = simulator.world.groups[simulator.seed.group_id]
    group.audit[1].event = f"group.member {PERSON}"
    group.audit[2].event = ""
    read = await read_audit_page(transport, group.id, oldest, oldest + timedelta(hours=1), 0)
    assert (len(read.value.lines), read.value.raw_count, read.value.is_last) == (1, 3, True)


def line(**more: Any) -> dict[str, Any]:
    return {
        "id": "gaud_1",
        "groupId": GROUP,
        "eventType": "group.update",
        "created_at": "2026-01-01T00:00:00.000Z",
    } | more


@pytest.mark.parametrize(
    ("document", "raised"),
    [
        ({"results": [line(groupId=made_id("grp", "other"))], "hasNext": False}, errors.ProviderScope),
        ({"results": [line()]}, errors.SchemaDrift),
        ({"results": [line()] * 101, "hasNext": False}, errors.SchemaDrift),
        ({"results": [], "hasNext": True}, errors.SchemaDrift),
        ({"results": [line(created_at="2026-01-01T00:00:00")], "hasNext": False}, errors.SchemaDrift),
        ({"results": [line(created_at=None)], "hasNext": False}, errors.SchemaDrift),
        ({"results": [line(id="../x")], "hasNext": False}, errors.SchemaDrift),
        ({"results": [line(eventType=None)], "hasNext": False}, errors.SchemaDrift),
        ({"hasNext": False}, errors.SchemaDrift),
        (None, errors.SchemaDrift),
        ([], errors.SchemaDrift),
    ],
    ids=lambda value: repr(value)[:60],
)
async def test_a_page_that_is_none_moves_no_offset(
    simulator: Simulator, transport: Transport, document: Any, raised: type[errors.ProviderFault]
) -> None:
    simulator.arm(faults.say(msgspec.json.encode(document).decode()), path="*/auditLogs")
    starts_at = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(errors.ProviderFault) as caught:
        await read_audit_page(transport, GROUP, starts_at, starts_at + timedelta(days=1), 0)
    assert type(caught.value) is raised


async def test_without_the_grant_the_log_is_refused(simulator: Simulator, transport: Transport) -> None:
    change(simulator, "take_grant", user_id=simulator.seed.bot_id, grant=AUDIT_GRANT)
    now = simulator.clock.wall()
    with pytest.raises(errors.ProviderPermissions):
        await read_audit_page(transport, simulator.seed.group_id, now - timedelta(days=1), now, 0)
