"""Every call of the worker protocol by its name in the path, ``POST /worker/v1/<call>``."""

from __future__ import annotations

from lastcall.protocol.membership import Groups, GroupsAnswer, Left, Membership, MembershipAnswer
from lastcall.protocol.messages import (
    Allowance,
    AllowanceAnswer,
    Authorize,
    AuthorizeAnswer,
    Call,
    Claim,
    ClaimAnswer,
    Complete,
    Defer,
    Done,
    Failure,
    Hello,
    HelloAnswer,
    Lease,
    LeaseAnswer,
    Message,
    Recorded,
    Reject,
    Release,
    Renew,
    RenewAnswer,
    Wait,
    WaitAnswer,
)
from lastcall.protocol.reads import ReadClaim, ReadClaimAnswer, ReadComplete, ReadFailed, ReadRecorded
from lastcall.protocol.telemetry import AuditClaim, AuditClaimAnswer, AuditPage, Kept, Sample

CALLS: dict[str, tuple[type[Call], type[Message]]] = {
    "hello": (Hello, HelloAnswer),
    "wait": (Wait, WaitAnswer),
    "lease": (Lease, LeaseAnswer),
    "renew": (Renew, RenewAnswer),
    "release": (Release, Done),
    "allowance": (Allowance, AllowanceAnswer),
    "claim": (Claim, ClaimAnswer),
    "authorize": (Authorize, AuthorizeAnswer),
    "complete": (Complete, Recorded),
    "reject": (Reject, Recorded),
    "defer": (Defer, Recorded),
    "failure": (Failure, Done),
    "read_claim": (ReadClaim, ReadClaimAnswer),
    "read_complete": (ReadComplete, ReadRecorded),
    "read_failed": (ReadFailed, ReadRecorded),
    "sample": (Sample, Kept),
    "audit_claim": (AuditClaim, AuditClaimAnswer),
    "audit_page": (AuditPage, Kept),
    "membership": (Membership, MembershipAnswer),
    "left": (Left, Done),
    "groups": (Groups, GroupsAnswer),
}
"""Every call by its name in the path: what is sent and what is answered."""
