"""The calls about reads that somebody at a screen waits for."""

from __future__ import annotations

from datetime import timedelta

from litestar import post
from litestar.di import NamedDependency

from lastcall.api.worker.admission import WorkerRequest, admit
from lastcall.api.worker.services import Answer, WorkerServices, answer
from lastcall.api.worker.translate import lease_held, milliseconds, read_held
from lastcall.db.ids import encode_id
from lastcall.protocol.reads import (
    ClaimedRead,
    ReadClaim,
    ReadClaimAnswer,
    ReadComplete,
    ReadFailed,
    ReadRecorded,
)
from lastcall.reads.pages import Page


@post("/read_claim", status_code=200)
async def read_claim(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, ReadClaim)
    claimed = await services.reads.claim(worker, lease_held(call.lease))
    if claimed is None:
        return answer(ReadClaimAnswer())
    return answer(
        ReadClaimAnswer(
            read=ClaimedRead(
                read_id=encode_id(claimed.read_id),
                nonce=encode_id(claimed.nonce),
                kind=claimed.kind,
                params=claimed.params,
                life_ms=milliseconds(claimed.life),
            )
        )
    )


@post("/read_complete", status_code=200)
async def read_complete(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    arrived = services.reads.clock.boot()
    call, worker = await admit(request, services.keys, ReadComplete)
    is_recorded = await services.reads.complete(
        worker,
        read_held(call.read),
        Page(call.items, call.next_offset, call.total),
        call.evidence,
        age=timedelta(milliseconds=call.age_ms),
        arrived=arrived,
    )
    return answer(ReadRecorded(is_recorded=is_recorded))


@post("/read_failed", status_code=200)
async def read_failed(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, ReadFailed)
    is_recorded = await services.reads.fail(worker, read_held(call.read), call.code)
    return answer(ReadRecorded(is_recorded=is_recorded))


HANDLERS = (read_claim, read_complete, read_failed)
