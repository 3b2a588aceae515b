"""What the phases of one pass share: the account, the lease, the time that is left, and what was seen."""

from __future__ import annotations

from dataclasses import dataclass

from lastcall.collector.account import Account
from lastcall.collector.evidence import group_seen, own_evidence
from lastcall.collector.holding import Held, hold
from lastcall.collector.leases import HeldLease
from lastcall.collector.reporting import Reporter
from lastcall.protocol.constants import WORKER_EVIDENCE_AGE
from lastcall.protocol.membership import Membership, MembershipAnswer
from lastcall.vrchat.evidence import OwnMember
from lastcall.vrchat.groups import GroupLook, look_at_group

ANALYTICS = "analytics"
"""The feature that the aggregates are read for."""


@dataclass
class Pass:
    """One pass over one connection. ``until`` is the boot time from which on it takes nothing new; ``state`` the
    connection's, as the server last said it.

    ``has_worked``: somebody waited for something that it did. ``is_reported``: the server has this pass's look at the
    group. ``own`` is the latest evidence, of whatever phase.
    """

    account: Account
    reporter: Reporter
    lease: HeldLease
    until: float
    state: str
    has_worked: bool = False
    is_reported: bool = False
    own: OwnMember | None = None
    look: GroupLook | None = None

    @property
    def has_analytics(self) -> bool:
        """Without settings a connection has its analytics alone (COL-04)."""
        return self.lease.features is None or ANALYTICS in self.lease.features

    @property
    def has_more_than_analytics(self) -> bool:
        return self.lease.features is not None and bool(self.lease.features - {ANALYTICS})

    def goes_on(self) -> bool:
        """Whether it may take something new."""
        account = self.account
        return (
            not (account.stop.is_set() or account.must_say_hello or self.lease.is_lost)
            and account.clock.boot() < min(self.until, self.lease.until)
            and account.may_ask()
        )

    async def hold(self, amount: int, until: float, *, is_write: bool = False) -> Held:
        """Requests for a phase, waited for until ``until`` at most; see ``holding.hold``."""
        return await hold(self.account, self.lease, amount, until, is_write=is_write)

    # --- the group

    def fresh_own(self) -> OwnMember | None:
        """The evidence, while it is young enough to act on (BUD-05)."""
        return self.own if self.own is not None and self._is_fresh(self.own.asked_at) else None

    def fresh_look(self) -> GroupLook | None:
        return self.look if self.look is not None and self._is_fresh(self.look.asked_at) else None

    async def look_at_group(self, held: Held) -> GroupLook:
        """Read the group, with one of the held requests. No membership is no fault here."""
        held.charge()
        self.look = await look_at_group(
            self.account.transport, self.lease.group_id, self.account.vrchat_user_id
        )
        self.own = self.look.own
        return self.look

    async def report(self, look: GroupLook) -> None:
        """Tell the server what was seen; the rest of the pass goes by the state that it answers (COL-01)."""
        now = self.account.clock.boot()
        evidence = None if look.own is None else own_evidence(look.own, now)
        answer = await self.account.call(
            Membership, MembershipAnswer, lease=self.lease.ref, group=group_seen(look), evidence=evidence
        )
        self.state, self.is_reported = answer.state, True

    def _is_fresh(self, asked_at: float) -> bool:
        return self.account.clock.boot() - asked_at <= WORKER_EVIDENCE_AGE.total_seconds()
