"""What somebody else changes at VRChat at each step of a pass, as its request arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from tests.hostile.scenes import PREFLIGHT, Scene, expect_all, scenes_of
from tests.hostile.stage import Seen, Stage
from tests.hostile.test_provider_faults import WELL

pytestmark = pytest.mark.asyncio(loop_scope="module")

Change = Callable[[Scene], None]


def taken(*grants: str) -> Change:
    def take(scene: Scene) -> None:
        for grant in grants:
            scene.place.edit("take_grant", user_id=scene.place.bot.id, grant=grant)

    return take


def signed_out(scene: Scene) -> None:
    scene.place.edit("end_sessions", user_id=scene.place.bot.id)


def removed(scene: Scene) -> None:
    scene.place.edit("remove_member", user_id=scene.place.bot.id)


def handed_over(scene: Scene) -> None:
    scene.place.edit("transfer", user_id=scene.target)


def made_private(scene: Scene) -> None:
    scene.place.edit("set_privacy", privacy="private")


def closed(scene: Scene) -> None:
    scene.place.edit("close_instance", location=scene.location)


def unfriended(scene: Scene) -> None:
    scene.place.edit("unfriend", user_id=scene.place.bot.id, other_id=scene.target)


Steps = dict[str, Seen]


@dataclass(frozen=True)
class Case:
    """A change, and how everything stands after a pass that met it at each of these steps."""

    change: Change
    expected: Steps
    kind: str = "invite_to_instance"


def stops_all(operation: str, code: str, *, connection: str, account: str) -> Steps:
    """Nothing more is asked of VRChat in the connection's name; what was done by then stays done."""
    stopped = Seen(operation, "pending", "pending", connection, account, "unknown", 0)
    done = replace(stopped, operation="succeeded", behind="succeeded", read="succeeded", writes=1)
    expected = dict.fromkeys((*PREFLIGHT, "write"), stopped)
    return expected | {"read": replace(done, read=f"failed {code}"), "aggregates": done, "audit": done}


def ends(code: str, *steps: str) -> Steps:
    """The operation ends before its write, or by VRChat's own refusal of it; everything else goes on (COL-08)."""
    return dict.fromkeys(steps, replace(WELL, operation=f"rejected {code}", writes=0))


def left() -> Steps:
    """An invitation is no business of the group's: it goes out. The next look at the group ends the pass."""
    expected = stops_all(
        "rejected membership", "membership", connection="awaiting_invite membership", account="ready"
    )
    late = replace(expected["group"], operation="succeeded", behind="rejected membership", writes=1)
    return expected | dict.fromkeys(("place", "friendship", "write"), late)


SIGNED_OUT = stops_all(
    "rejected authentication",
    "authentication",
    connection="auth_required authentication",
    account="auth_required",
)
NO_AUDIT = replace(WELL, connection="active provider_permissions", coverage="degraded")

CASES = {
    "the cookie ends": Case(
        signed_out, SIGNED_OUT | {"audit": replace(SIGNED_OUT["audit"], coverage="degraded")}
    ),
    "the account is removed": Case(removed, left()),
    "the kind's grant is withdrawn": Case(
        taken("group-instance-manage"),
        ends("provider_permissions", "group", "place", "write"),
        kind="close_instance",
    ),
    "the grant to read is withdrawn": Case(
        taken("group-members-viewall", "group-members-manage"),
        {"read": replace(WELL, read="failed provider_permissions"), "aggregates": WELL},
    ),
    "the grant of the audit log is withdrawn": Case(
        taken("group-audit-view"), dict.fromkeys(("aggregates", "audit"), NO_AUDIT)
    ),
    "the group is handed over": Case(
        handed_over,
        ends("protected_target", "group") | ends("provider_permissions", "write"),
        kind="ban_member",
    ),
    "the group becomes private": Case(
        made_private,
        ends("group_visibility", "group") | ends("provider_permissions", "write"),
        kind="create_instance",
    ),
    "the instance to invite to closes": Case(
        closed, ends("destination_closed", "place") | dict.fromkeys(("friendship", "write"), WELL)
    ),
    "the instance to close closes": Case(
        closed, ends("destination_closed", "place") | ends("already_closed", "write"), kind="close_instance"
    ),
    "the friend is one no more": Case(unfriended, ends("friendship", "friendship", "write")),
}


@pytest.mark.clause("COL-03", "COL-08")
@pytest.mark.parametrize("name", CASES)
async def test_a_change_at_each_step_has_its_reason_and_stops_no_more_than_it_has_to(
    stage: Stage, name: str
) -> None:
    case = CASES[name]
    scenes = await scenes_of(stage, dict.fromkeys(case.expected, case.kind))
    await asyncio.gather(*(scene.change_at(step, case.change) for step, scene in scenes.items()))
    await expect_all(scenes, case.expected)


async def test_a_change_that_nobody_makes_is_met_nowhere(stage: Stage) -> None:
    """The twin of all of the above: what they see comes of their change alone."""
    scenes = await scenes_of(stage, dict.fromkeys(("group", "write"), "ban_member"))
    await asyncio.gather(*(scene.change_at(step, lambda _scene: None) for step, scene in scenes.items()))
    await expect_all(scenes, dict.fromkeys(scenes, WELL))
