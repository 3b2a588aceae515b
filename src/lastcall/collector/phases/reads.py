"""Reads that somebody at a screen waits for, until nobody does or the pass's four minutes are over."""

from __future__ import annotations

from lastcall.collector.account import BudgetTooLow, NoAllowance
from lastcall.collector.evidence import age_ms, own_evidence
from lastcall.collector.failures import trouble_of
from lastcall.collector.passes import Pass
from lastcall.protocol.outcomes import Code
from lastcall.protocol.reads import (
    ClaimedRead,
    ReadClaim,
    ReadClaimAnswer,
    ReadComplete,
    ReadFailed,
    ReadRecorded,
    ReadRef,
)
from lastcall.vrchat.errors import Membership, ProviderFault
from lastcall.vrchat.evidence import OwnMember
from lastcall.vrchat.reads import Page, Params, ReadKind, read_kind


async def run(current: Pass) -> None:
    """Raises a fault that is more than one read's; that read is recorded as failed by then (COL-06, COL-03). An
    ordinary one is that read's alone."""
    account, lease = current.account, current.lease
    while current.goes_on():
        asked_at = account.clock.boot()
        answer = await account.call(ReadClaim, ReadClaimAnswer, lease=lease.ref)
        if answer.read is None:
            return
        current.has_worked = True
        await _answer(current, answer.read, asked_at + answer.read.life_ms / 1000)


async def _answer(current: Pass, claimed: ClaimedRead, until: float) -> None:
    """Read it and hand it in, or say why not. ``until``: the boot time from which on nobody waits for it."""
    account = current.account
    try:
        kind = read_kind(claimed.kind)
        own, page = await _read(current, kind, kind.read_params(claimed.params), min(until, current.until))
    except BudgetTooLow:
        await _failed(current, claimed, Code.BUDGET_TOO_LOW)
    except NoAllowance as full:
        await _failed(current, claimed, full.code)
    except ProviderFault as raised:
        fault = await account.look_into(raised)
        await _failed(current, claimed, fault.code)
        if trouble_of(fault).is_shared:
            raise fault from raised
    else:
        now = account.clock.boot()
        await account.call(
            ReadComplete,
            ReadRecorded,
            read=_ref(current, claimed),
            evidence=own_evidence(own, now),
            age_ms=age_ms(min(own.asked_at, page.asked_at), now),
            items=page.rows,
            next_offset=page.next_offset,
            total=page.total,
        )
        account.tally.reads["answered"] += 1


async def _read(current: Pass, kind: ReadKind, params: Params, until: float) -> tuple[OwnMember, Page]:
    """The page and the evidence that it was read under: this pass's while it is fresh, else read first."""
    while True:
        has_evidence = current.fresh_own() is not None
        with await current.hold(kind.cost(params) - has_evidence, until) as held:
            held.until = min(held.until, until)
            own = current.fresh_own()
            if own is None and has_evidence:
                continue  # it grew old while the requests were waited for, and these do not cover another look
            if own is None:
                own = (await current.look_at_group(held)).own
            if own is None:
                raise Membership("The account is not a member of the group.")
            return own, await kind.read(current.account.transport, own, params, held.charge)


async def _failed(current: Pass, claimed: ClaimedRead, code: str) -> None:
    await current.account.call(ReadFailed, ReadRecorded, read=_ref(current, claimed), code=code)
    current.account.tally.reads["failed"] += 1


def _ref(current: Pass, claimed: ClaimedRead) -> ReadRef:
    lease = current.lease.ref
    return ReadRef(
        club_id=lease.club_id,
        connection_id=lease.connection_id,
        epoch=lease.epoch,
        fencing_token=lease.fencing_token,
        read_id=claimed.read_id,
        nonce=claimed.nonce,
    )
