"""The calls of a connection's life: what the account is to a group, that it left one, and which it serves."""

from __future__ import annotations

from litestar import post
from litestar.di import NamedDependency
from litestar.types import ControllerRouterHandler

from lastcall.api.worker.admission import WorkerRequest, admit
from lastcall.api.worker.services import Answer, WorkerServices, answer
from lastcall.api.worker.translate import lease_held
from lastcall.connections.membership import groups_served, report_left, report_membership
from lastcall.db.ids import encode_id
from lastcall.protocol.membership import (
    Groups,
    GroupsAnswer,
    GroupServed,
    Left,
    Membership,
    MembershipAnswer,
)
from lastcall.protocol.messages import Done


@post("/membership", status_code=200)
async def membership(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Membership)
    state = await report_membership(services.db, worker, lease_held(call.lease), call.group, call.evidence)
    return answer(MembershipAnswer(state=state))


@post("/left", status_code=200)
async def left(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Left)
    await report_left(services.db, worker, lease_held(call.lease))
    return answer(Done())


@post("/groups", status_code=200)
async def groups(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    _, worker = await admit(request, services.keys, Groups)
    return answer(
        GroupsAnswer(
            groups=tuple(
                GroupServed(
                    club_id=encode_id(one.club_id),
                    connection_id=encode_id(one.connection_id),
                    group_id=one.group_id,
                    state=one.state,
                    features=one.features,
                )
                for one in await groups_served(services.db, worker)
            )
        )
    )


HANDLERS: tuple[ControllerRouterHandler, ...] = (membership, left, groups)
