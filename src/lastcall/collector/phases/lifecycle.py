"""Before anything else a connection has to be in its group; and one that is being ended has to leave it (COL-09)."""

from __future__ import annotations

from lastcall.collector.account import NoAllowance
from lastcall.collector.failures import Setback, Trouble
from lastcall.collector.passes import Pass
from lastcall.protocol.constants import RETRY_DELAY_LEAST
from lastcall.protocol.membership import Left
from lastcall.protocol.messages import Done
from lastcall.protocol.outcomes import Code, Outcome
from lastcall.vrchat import groups
from lastcall.vrchat.groups import GroupLook
from lastcall.vrchat.joining import CONNECTING, should_join
from lastcall.vrchat.writes import Judgement

JOINING = 3
"""Requests of joining: the look before it where the first one grew old, the write, the look after it."""


async def enter(current: Pass) -> None:
    """Look at the group, join where that is due, and report; the pass goes on by the answered state.

    A connection that is still connecting afterwards has failed: it comes again after a growing wait, and does not
    knock at the group's door with every pass.
    """
    with await current.hold(1, current.until) as held:
        look = await current.look_at_group(held)
    judged = None
    if should_join(current.state, look):
        judged, look = await _join(current)
    await current.report(look)
    if current.state == CONNECTING:
        code = Code.SCHEMA_DRIFT if judged is None else judged.code or Code.PROVIDER_ERROR
        raise Setback(Trouble(code, "The account did not get into the group."))


async def _join(current: Pass) -> tuple[Judgement | None, GroupLook]:
    """Join, and look again: only the group says what the account is to it now. Not joined, where an older look is
    made anew and says otherwise."""
    account, lease = current.account, current.lease
    with await current.hold(JOINING, current.until, is_write=True) as held:
        look = current.fresh_look() or await current.look_at_group(held)
        if not should_join(current.state, look):
            return None, look
        judged = await groups.join(
            account.transport, lease.group_id, account.vrchat_user_id, may_send=held.may_send
        )
        if judged.fault is not None:
            raise judged.fault
        return judged, await current.look_at_group(held)


async def leave(current: Pass) -> None:
    """Leave the group. An account that is no member of it has left it, too."""
    account, lease = current.account, current.lease
    with await current.hold(1, current.until, is_write=True) as held:
        judged = await groups.leave(
            account.transport, lease.group_id, account.vrchat_user_id, may_send=held.may_send
        )
    if judged.fault is not None:
        raise judged.fault
    if judged.outcome is not Outcome.SUCCEEDED:
        account.check()
        lease.check(account.clock.boot())
        if judged.code == Code.NOT_ATTEMPTED:
            raise NoAllowance(RETRY_DELAY_LEAST.total_seconds())
        raise Setback(
            Trouble(judged.code or Code.PROVIDER_ERROR, "The account did not get out of the group.")
        )
    await account.call(Left, Done, lease=lease.ref)
