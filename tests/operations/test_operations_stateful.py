"""Whatever happens to operations, in whatever order: the database and a plain Python model agree after each step.

A run draws examples of a dozen steps from everything that the machine knows: what staff, collectors, owners of
deadlines, events and operators do, over two clubs of one account with two collectors, and the clock to exact
boundaries. ``make soak`` draws 20 000 of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from machine_rules import Machine
from machine_stage import Stage
from machine_things import CLEAN_UP_PAGE, FAN_OUT_PAGE

import lastcall.operations.listeners
import lastcall.operations.owners.epochs
import lastcall.operations.owners.fanout
from lastcall.db.database import Database
from lastcall.operations.machine import State

EXAMPLES = 500
STEPS = 12
ROUNDS = 40
"""Of ``EXAMPLES`` each, in the long run."""


@pytest.fixture(scope="module")
def machine(shared_url: str) -> Iterator[type[Machine]]:
    """The machine on a database of this module's own."""
    lastcall.operations.listeners.register()
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setattr(lastcall.operations.owners.fanout, "PAGE", FAN_OUT_PAGE)
        patch.setattr(lastcall.operations.owners.epochs, "PAGE", CLEAN_UP_PAGE)
        db = runner.run(Database.open(shared_url))
        stage = runner.run(Stage.open(db))
        yield type("Machine", (Machine,), {"stage": stage, "runner": runner})
        runner.run(stage.raw.close())
        runner.run(db.close())


def example_settings(*, derandomize: bool) -> settings:
    return settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        derandomize=derandomize,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.clause("WRK-10", "WRK-12", "EVT-09")
@pytest.mark.timeout(600)
def test_the_model_and_the_database_agree_after_each_step_of_any_order(machine: type[Machine]) -> None:
    run_state_machine_as_test(machine, settings=example_settings(derandomize=True))
    assert machine.stage.reached >= set(State), "some state was never reached"


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("turn", range(ROUNDS))
def test_they_agree_through_many_more_orders(machine: type[Machine], turn: int) -> None:
    machine.runner.run(machine.stage.raw.execute("vacuum"))
    machine.stage.reached.clear()
    run_state_machine_as_test(machine, settings=example_settings(derandomize=False))
    assert machine.stage.reached >= set(State), "some state was never reached"
