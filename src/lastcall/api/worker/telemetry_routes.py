"""The calls that hand in a group's aggregates and pages of its audit log."""

from __future__ import annotations

from datetime import timedelta

from litestar import post
from litestar.di import NamedDependency

from lastcall.api.worker.admission import WorkerRequest, admit
from lastcall.api.worker.services import Answer, WorkerServices, answer
from lastcall.api.worker.translate import instant, lease_held
from lastcall.db.ids import decode_id, encode_id
from lastcall.protocol.telemetry import (
    AuditClaim,
    AuditClaimAnswer,
    AuditPage,
    AuditWindow,
    Kept,
    Sample,
)
from lastcall.telemetry.collecting import (
    AuditLine,
    InstancePopulation,
    claim_audit_page,
    record_audit_page,
    record_sample,
)


@post("/sample", status_code=200)
async def sample(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Sample)
    is_recorded = await record_sample(
        services.db,
        worker,
        lease_held(call.lease),
        poll_id=call.poll_id,
        age=timedelta(milliseconds=call.age_ms),
        member_count=call.member_count,
        instances=[InstancePopulation(one.location, one.world_id, one.population) for one in call.instances],
    )
    return answer(Kept(is_recorded=is_recorded))


@post("/audit_claim", status_code=200)
async def audit_claim(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, AuditClaim)
    due = await claim_audit_page(services.db, worker, lease_held(call.lease))
    if due is None:
        return answer(AuditClaimAnswer())
    return answer(
        AuditClaimAnswer(
            window=AuditWindow(
                scan_id=encode_id(due.scan_id),
                starts_at=due.starts_at,
                ends_at=due.ends_at,
                offset=due.offset,
            )
        )
    )


@post("/audit_page", status_code=200)
async def audit_page(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, AuditPage)
    is_recorded = await record_audit_page(
        services.db,
        worker,
        lease_held(call.lease),
        decode_id(call.scan_id),
        call.offset,
        raw_count=call.raw_count,
        is_last=call.is_last,
        lines=[AuditLine(one.entry_id, instant(one.at, "entries"), one.event) for one in call.entries],
    )
    return answer(Kept(is_recorded=is_recorded))


HANDLERS = (sample, audit_claim, audit_page)
