"""One page of the group's audit log, where the group shows it to the account. Optional: nothing here waits."""

from __future__ import annotations

from lastcall.collector.passes import Pass
from lastcall.protocol.telemetry import AuditClaim, AuditClaimAnswer, AuditEntry, AuditPage, Kept
from lastcall.vrchat.audit import AUDIT_GRANT, read_audit_page


async def run(current: Pass) -> None:
    """The page that comes next, if there is one."""
    account, lease = current.account, current.lease
    window = (await account.call(AuditClaim, AuditClaimAnswer, lease=lease.ref)).window
    if window is None:
        return
    with await current.hold(1, account.clock.boot()) as held:
        held.charge()
        page = await read_audit_page(
            account.transport, lease.group_id, window.starts_at, window.ends_at, window.offset
        )
    await account.call(
        AuditPage,
        Kept,
        lease=lease.ref,
        scan_id=window.scan_id,
        offset=window.offset,
        raw_count=page.value.raw_count,
        is_last=page.value.is_last,
        entries=tuple(
            AuditEntry(entry_id=line.entry_id, at=line.at, event=line.event) for line in page.value.lines
        ),
    )
    account.tally.audit_pages += 1


def is_wanted(current: Pass) -> bool:
    return current.has_analytics and current.own is not None and current.own.has_grants((AUDIT_GRANT,))
