"""What VRChat, or the way to it, does wrong at each request of a pass: every operation and read ends with its reason,
the account and the connection stand as they should, and no write is made twice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import pytest
from tests.hostile.scenes import PREFLIGHT, STEPS, expect_all, scenes_of
from tests.hostile.stage import Seen, Stage

from lastcall.collector import opening
from lastcall.protocol.constants import GRACE
from lastcall.vrchat.simulator import faults
from lastcall.vrchat.transport import Transport

pytestmark = pytest.mark.asyncio(loop_scope="module")

WELL = Seen("succeeded", "succeeded", "succeeded", "active", "ready", "observed", 1)
"""A pass without a fault."""

BACKOFF = 12.0
USUAL = 61.0
"""Seconds: beyond a connection's first backoff, and beyond the usual delay of a deferred operation. A group without
visitors is not looked at again so soon."""

Steps = dict[str, Seen]


@dataclass(frozen=True)
class Case:
    """How it stands when the faulty pass is over, and so many seconds after the stage before, VRChat being well
    again."""

    fault: faults.Fault
    at_once: Steps
    later: tuple[tuple[float, Steps], ...]


def of_steps(preflight: Seen, **others: Seen) -> Steps:
    return {step: preflight if step in PREFLIGHT else others[step] for step in STEPS}


def unwell(fault: faults.Fault, code: str, write: str = "", writes: int = 0) -> Case:
    """Nobody knows what it was. Before the write the operation waits and the connection backs off; a read fails alone,
    and so do aggregates and audit log (COL-05). Only of the write itself the outcome is unknown, and it is not sent
    again."""
    waits = Seen(f"pending {code}", "pending", "pending", f"active {code}", "ready", "unknown", 0)
    others = {
        "write": replace(WELL, operation=write or f"indeterminate {code}", writes=writes),
        "read": replace(WELL, read=f"failed {code}"),
        "aggregates": replace(WELL, coverage="unknown"),
    }
    at_once = of_steps(waits, **others, audit=replace(WELL, connection=f"active {code}", coverage="degraded"))
    goes_on = replace(WELL, operation=f"pending {code}", writes=0)
    soon = of_steps(goes_on, **others, audit=at_once["audit"])
    # Aggregates that failed alone are read again within the minute.
    then = of_steps(WELL, **others | {"aggregates": WELL}, audit=WELL)
    return Case(fault, at_once, ((BACKOFF, soon), (USUAL, then)))


def refused_once() -> Case:
    """A 401 is looked at once more before anybody calls the session over. A refused write did not happen; its pass ends
    there."""
    case = unwell(faults.answer(401), "transient", write="rejected authentication")
    stopped = replace(case.at_once["group"], operation="rejected authentication")
    return replace(case, at_once=case.at_once | {"write": stopped})


def another_shape() -> Case:
    """An answer that is none is no evidence, and asking again would not make it one: the operation ends, whatever else
    the pass has to do goes on."""
    rejected = replace(WELL, operation="rejected schema_drift", writes=0)
    at_once = of_steps(
        rejected,
        write=replace(rejected, operation="indeterminate schema_drift"),
        read=replace(WELL, read="failed schema_drift"),
        aggregates=replace(WELL, coverage="unknown"),
        audit=replace(WELL, connection="active schema_drift", coverage="degraded"),
    )
    return Case(faults.say("[[]]"), at_once, ((USUAL, at_once | {"aggregates": WELL, "audit": WELL}),))


def paused(fault: faults.Fault, seconds: float) -> Case:
    """The whole account stops before its next request, whatever it was that met the 429 (RCV-10, COL-03). A throttled
    write did not happen."""
    waits = Seen("pending rate_limit", "pending", "pending", "active", "cooldown", "unknown", 0)
    done = Seen("succeeded", "succeeded", "succeeded", "active", "cooldown", "unknown", 1)
    at_once = of_steps(
        waits,
        write=replace(waits, operation="rejected rate_limit"),
        read=replace(done, read="failed rate_limit"),
        aggregates=done,
        audit=replace(done, coverage="degraded"),
    )
    return Case(fault, at_once, ((seconds + 2, {step: _goes_on(seen) for step, seen in at_once.items()}),))


def _goes_on(seen: Seen) -> Seen:
    """After a pause what waited is done, and what was not counted is; a read that waited is too old by then."""
    if seen.behind != "pending":
        return replace(seen, account="ready", coverage="observed")
    is_rejected = seen.operation.startswith("rejected")
    return replace(
        WELL,
        operation=seen.operation if is_rejected else "succeeded",
        read="failed not_answered",
        writes=0 if is_rejected else 1,
    )


def given_up(fault: faults.Fault) -> Case:
    """A pause that outlives every grace: what waits is missed, at once where the delay says so (RCV-09)."""
    at_once = {
        step: replace(seen, operation="missed late_window_elapsed") if step in PREFLIGHT else seen
        for step, seen in paused(fault, 0).at_once.items()
    }
    then = {
        step: replace(seen, read="gone", behind=seen.behind.replace("pending", "missed late_window_elapsed"))
        for step, seen in at_once.items()
    }
    return Case(fault, at_once, ((GRACE.total_seconds() + 1, then),))


CASES = {
    "429, at once": paused(faults.answer(429, retry_after="0"), 60),
    "429, in two minutes": paused(faults.answer(429, retry_after="120"), 120),
    "429, in a day": given_up(faults.answer(429, retry_after="86400")),
    "429, at no time": paused(faults.answer(429), 60),
    "503": unwell(faults.answer(503), "transient"),
    "a proxy's page": unwell(faults.proxy_page(502, applied=False), "transient"),
    "garbage": unwell(faults.garbage(applied=False), "transient", write="indeterminate schema_drift"),
    "another shape": another_shape(),
    "a cut connection": unwell(faults.drop(applied=False), "network"),
    "a dripping body": unwell(faults.drip(), "timeout", writes=1),
    "401 once": refused_once(),
}


@pytest.mark.clause("COL-03", "COL-05", "RCV-10")
@pytest.mark.parametrize("name", CASES)
async def test_a_fault_at_each_step_has_its_reason_and_writes_nothing_twice(
    stage: Stage, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    if case.fault.reply == "drip":
        monkeypatch.setattr(opening, "Transport", partial(Transport, total=timedelta(seconds=2)))
    scenes = await scenes_of(stage, dict.fromkeys(STEPS, "invite_to_instance"))
    for step, scene in scenes.items():
        scene.arm(case.fault, step)
        scene.place.start()
    await expect_all(scenes, case.at_once)
    for seconds, then in case.later:
        await stage.advance(seconds)
        await expect_all(scenes, then)
