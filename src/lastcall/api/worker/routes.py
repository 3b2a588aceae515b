"""One route a call."""

from __future__ import annotations

from litestar import Router, post
from litestar.di import NamedDependency, Provide
from litestar.types import ControllerRouterHandler

from lastcall.api.departure import unless_departed
from lastcall.api.worker import membership_routes, read_routes, telemetry_routes
from lastcall.api.worker.admission import WorkerRequest, admit
from lastcall.api.worker.services import Answer, WorkerServices, answer
from lastcall.api.worker.translate import claim_held, lease_held, milliseconds, milliseconds_up, reported
from lastcall.connections.allowance import reserve
from lastcall.connections.failures import record_failure
from lastcall.connections.hello import Journal, say_hello
from lastcall.connections.leases import release_lease, renew_lease, take_lease
from lastcall.db.ids import decode_id, encode_id
from lastcall.operations.services.worker import Settled
from lastcall.protocol.constants import BODY_BYTES_MOST, WAIT_LIFE
from lastcall.protocol.messages import (
    Allowance,
    AllowanceAnswer,
    Authorize,
    AuthorizeAnswer,
    Claim,
    ClaimAnswer,
    ClaimedOperation,
    Complete,
    Defer,
    Done,
    DueConnection,
    Failure,
    Hello,
    HelloAnswer,
    Lease,
    LeaseAnswer,
    Recorded,
    Reject,
    Release,
    Renew,
    RenewAnswer,
    Wait,
    WaitAnswer,
)


def worker_routes(services: WorkerServices) -> list[ControllerRouterHandler]:
    """The routes to mount. Whoever stops the process calls ``services.board.stop()`` first, which ends the
    long polls."""
    return [
        Router(
            path="/worker/v1",
            route_handlers=[
                hello,
                wait,
                lease,
                renew,
                release,
                allowance,
                claim,
                authorize,
                complete,
                reject,
                defer,
                failure,
                *read_routes.HANDLERS,
                *telemetry_routes.HANDLERS,
                *membership_routes.HANDLERS,
            ],
            dependencies={"services": Provide(lambda: services, sync_to_thread=False)},
            request_max_body_size=BODY_BYTES_MOST,
            include_in_schema=False,
        )
    ]


@post("/hello", status_code=200)
async def hello(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Hello)
    journal = Journal(
        decode_id(call.journal_id),
        call.is_journal_intact,
        [reported(submission) for submission in call.submissions],
    )
    welcome = await say_hello(services.db, worker, journal, call.release, call.joined_on)
    services.board.saw(worker.account_id, worker.worker_id)
    return answer(
        HelloAnswer(
            account_state=welcome.account_state,
            requests_per_minute=welcome.requests_per_minute,
            claims_returned=welcome.findings.claims_returned,
            not_attempted=tuple(encode_id(found) for found in welcome.findings.not_attempted),
            frozen_connections=tuple(encode_id(found) for found in welcome.frozen_connections),
        )
    )


@post("/wait", status_code=200)
async def wait(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    asked, worker = await admit(request, services.keys, Wait)
    waiting = services.board.wait(worker.account_id, worker.worker_id, WAIT_LIFE, asked.room)
    due = await unless_departed(request, waiting)
    return answer(
        WaitAnswer(
            due=tuple(
                DueConnection(club_id=encode_id(one.club_id), connection_id=encode_id(one.connection_id))
                for one in due
            )
        )
    )


@post("/lease", status_code=200)
async def lease(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Lease)
    given = await take_lease(services.db, worker, decode_id(call.club_id), decode_id(call.connection_id))
    return answer(
        LeaseAnswer(
            epoch=given.epoch,
            fencing_token=given.fencing_token,
            life_ms=milliseconds(given.life),
            state=given.state,
            group_id=given.group_id,
            features=given.features,
            requests_per_minute=given.requests_per_minute,
            account_requests_per_minute=given.account_requests_per_minute,
        )
    )


@post("/renew", status_code=200)
async def renew(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Renew)
    renewed = await renew_lease(services.db, worker, lease_held(call.lease))
    return answer(
        RenewAnswer(
            life_ms=milliseconds(renewed.life),
            requests_per_minute=renewed.requests_per_minute,
            account_requests_per_minute=renewed.account_requests_per_minute,
        )
    )


@post("/release", status_code=200)
async def release(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Release)
    await release_lease(services.db, worker, lease_held(call.lease))
    return answer(Done())


@post("/allowance", status_code=200)
async def allowance(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Allowance)
    held = None if call.lease is None else lease_held(call.lease)
    reservation = await reserve(services.db, worker, call.amount, held, is_write=call.is_write)
    return answer(
        AllowanceAnswer(
            is_granted=reservation.is_granted,
            limit=reservation.limit,
            window_ms=0 if reservation.window is None else milliseconds(reservation.window),
            retry_ms=0 if reservation.retry is None else milliseconds_up(reservation.retry),
            is_daily_cap=reservation.is_daily_cap,
        )
    )


@post("/claim", status_code=200)
async def claim(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Claim)
    claimed = await services.steps.claim(worker, lease_held(call.lease), decode_id(call.journal_id))
    if claimed is None:
        return answer(ClaimAnswer())
    return answer(
        ClaimAnswer(
            operation=ClaimedOperation(
                operation_id=encode_id(claimed.operation_id),
                nonce=encode_id(claimed.nonce),
                kind=claimed.kind,
                payload=claimed.payload,
                epoch=claimed.epoch,
                execute_before_ms=milliseconds(claimed.execute_before),
                life_ms=milliseconds(claimed.life),
            )
        )
    )


@post("/authorize", status_code=200)
async def authorize(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    arrived = services.steps.clock.boot()
    call, worker = await admit(request, services.keys, Authorize)
    verdict = await services.steps.authorize(
        worker,
        claim_held(call.claim),
        call.kind,
        call.evidence,
        friendship=call.friendship,
        arrived=arrived,
    )
    return answer(
        AuthorizeAnswer(is_authorized=verdict.is_authorized, code=verdict.code, state=verdict.state)
    )


@post("/complete", status_code=200)
async def complete(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Complete)
    return _recorded(
        await services.steps.complete(worker, claim_held(call.claim), call.outcome, call.code, call.result)
    )


@post("/reject", status_code=200)
async def reject(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Reject)
    return _recorded(await services.steps.reject(worker, claim_held(call.claim), call.code))


@post("/defer", status_code=200)
async def defer(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Defer)
    return _recorded(
        await services.steps.defer(worker, claim_held(call.claim), call.code, call.delay_ms / 1000)
    )


@post("/failure", status_code=200)
async def failure(request: WorkerRequest, services: NamedDependency[WorkerServices]) -> Answer:
    call, worker = await admit(request, services.keys, Failure)
    held = None if call.lease is None else lease_held(call.lease)
    after = None if call.retry_after_ms is None else call.retry_after_ms / 1000
    await record_failure(services.db, worker, held, call.code, after, telemetry_only=call.telemetry_only)
    return answer(Done())


def _recorded(settled: Settled) -> Answer:
    return answer(
        Recorded(
            is_recorded=settled.is_recorded,
            state=settled.state,
            code=settled.code,
            is_kept_as_evidence=settled.is_kept_as_evidence,
        )
    )
