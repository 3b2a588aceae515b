from __future__ import annotations

from operations_world import World

from lastcall.protocol.outcomes import Outcome


async def test_operation_goes_from_enqueue_to_its_outcome(world: World) -> None:
    operation_id, held = await world.submitted()
    settled = await world.steps.complete(world.worker, held, Outcome.SUCCEEDED, result={"roleId": "x"})
    assert settled.is_recorded
    row = await world.row(operation_id)
    assert row["state"] == "succeeded"
