"""Instance ids are taken apart, and an instance that is another group's, unknown or closed is none to go to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.vrchat import errors
from lastcall.vrchat.instances import (
    group_of,
    location_path,
    parts_of,
    read_friendship,
    read_open_instance,
)
from lastcall.vrchat.simulator import Simulator
from lastcall.vrchat.simulator.edits import edit
from lastcall.vrchat.transport import Transport

GROUP = "grp_00000000-0000-4000-8000-000000000001"
TAGS = (f"group({GROUP})", "groupAccessType(plus)", "region(eu)", "ageGate", "nonce(a-b)")


@given(st.permutations(TAGS))
def test_an_instance_is_the_same_in_whatever_order_its_tags_come(tags: list[str]) -> None:
    instance_id = "~".join(["12345", *tags])
    assert group_of(instance_id) == GROUP
    assert parts_of(instance_id) == parts_of("~".join(["12345", *TAGS]))
    assert parts_of(instance_id) != parts_of("~".join(["12346", *TAGS]))
    assert parts_of(instance_id) != parts_of("~".join(["12345", *TAGS, "strict"]))


@pytest.mark.parametrize(
    "instance_id",
    [
        "12345",
        "12345~region(eu)",
        "12345~groupAccessType(plus)",
        f"12345~group({GROUP})~group({GROUP})",
        f"12345~group({GROUP})~region(eu)~group(grp_x)",
        f"12345~group({GROUP}",
        "12345~group()",
        f"group({GROUP})",
    ],
)
def test_an_id_without_exactly_one_mark_of_a_group_belongs_to_none(instance_id: str) -> None:
    assert group_of(instance_id) is None


def test_a_mark_inside_another_tag_is_no_mark_of_that_group() -> None:
    assert group_of(f"12345~hidden(~group({GROUP}))") != GROUP


def opened(simulator: Simulator, number: str = "777") -> tuple[str, str]:
    seed = simulator.seed
    edit(
        simulator.clock, simulator.world, seed.group_id, "open_instance",
        world_id=seed.world_ids[0], number=number,
    )  # fmt: skip
    world_id, _, instance_id = next(reversed(simulator.world.instances)).partition(":")
    return world_id, instance_id


async def test_an_open_instance_is_found_under_another_order_of_its_tags(
    simulator: Simulator, transport: Transport
) -> None:
    world_id, instance_id = opened(simulator)
    simulator.world.instances |= {
        f"{world_id}:{'~'.join([name, *tags[::-1]])}": instance
        for instance in [simulator.world.instances[f"{world_id}:{instance_id}"]]
        for name, *tags in [instance_id.split("~")]
    }
    name, *tags = instance_id.split("~")
    asked = "~".join([name, *tags[::-1]])
    read = await read_open_instance(transport, world_id, asked, simulator.seed.group_id)
    assert read.value.instance_id == instance_id != asked


async def test_an_unknown_instance_is_answered_with_null_and_is_not_visible(
    simulator: Simulator, transport: Transport
) -> None:
    world_id, instance_id = opened(simulator)
    answer = await transport.exchange("GET", location_path(world_id, "9" + instance_id))
    assert (answer.status, answer.body) == (200, b"null")
    with pytest.raises(errors.NotVisible):
        await read_open_instance(transport, world_id, "9" + instance_id, simulator.seed.group_id)


@pytest.mark.parametrize("change", ["close_instance", "empty_instance"])
async def test_a_closed_or_ended_instance_is_no_destination(
    simulator: Simulator, transport: Transport, change: str
) -> None:
    world_id, instance_id = opened(simulator)
    location = f"{world_id}:{instance_id}"
    edit(simulator.clock, simulator.world, simulator.seed.group_id, change, location=location)
    with pytest.raises(errors.DestinationClosed):
        await read_open_instance(transport, world_id, instance_id, simulator.seed.group_id)


async def test_an_instance_of_another_group_is_refused_before_and_after_it_is_read(
    simulator: Simulator, transport: Transport
) -> None:
    world_id, instance_id = opened(simulator)
    asked = len(simulator.arrivals)
    with pytest.raises(errors.DestinationScope):
        await read_open_instance(transport, world_id, instance_id, GROUP)
    assert len(simulator.arrivals) == asked
    simulator.world.instances[f"{world_id}:{instance_id}"].group_id = GROUP
    with pytest.raises(errors.DestinationScope):
        await read_open_instance(transport, world_id, instance_id, simulator.seed.group_id)


async def test_friendship_is_what_vrchat_says_now(simulator: Simulator, transport: Transport) -> None:
    seed = simulator.seed
    before = simulator.clock.boot()
    friendship = await read_friendship(transport, seed.friends[0])
    assert friendship.value
    assert friendship.asked_at >= before
    edit(
        simulator.clock, simulator.world, seed.group_id, "unfriend",
        user_id=seed.bot_id, other_id=seed.friends[0],
    )  # fmt: skip
    assert not (await read_friendship(transport, seed.friends[0])).value
