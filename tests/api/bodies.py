"""A well-formed body for every worker call, about things that do not exist."""

from __future__ import annotations

from typing import Any

from lastcall.db.ids import encode_id, new_id

LEASE = {
    "clubId": encode_id(new_id()),
    "connectionId": encode_id(new_id()),
    "epoch": "2026-01-01T00:00:00.000001Z",
    "fencingToken": 1,
}
CLAIM = {**LEASE, "operationId": encode_id(new_id()), "nonce": encode_id(new_id())}
EVIDENCE = {
    "ageMs": 0,
    "groupId": "grp_1",
    "ownerId": "usr_owner",
    "userId": "usr_1",
    "memberStatus": "member",
    "permissions": ["*"],
    "roleIds": [],
    "roles": [],
    "privacy": "default",
}

READ = {**LEASE, "readId": encode_id(new_id()), "nonce": encode_id(new_id())}

GROUP = {
    "groupId": "grp_1",
    "name": "Group 1",
    "privacy": "default",
    "joinState": "open",
    "membership": "member",
}

BODIES: dict[str, dict[str, Any]] = {
    "hello": {"journalId": encode_id(new_id()), "isJournalIntact": True, "release": "0.1.0"},
    "wait": {},
    "lease": {"clubId": LEASE["clubId"], "connectionId": LEASE["connectionId"]},
    "renew": {"lease": LEASE},
    "release": {"lease": LEASE},
    "allowance": {"amount": 1},
    "claim": {"lease": LEASE, "journalId": encode_id(new_id())},
    "authorize": {"claim": CLAIM, "kind": "ban_member", "evidence": EVIDENCE},
    "complete": {"claim": CLAIM, "outcome": "indeterminate", "code": "timeout"},
    "reject": {"claim": CLAIM, "code": "visibility"},
    "defer": {"claim": CLAIM, "code": "network", "delayMs": 1000},
    "membership": {"lease": LEASE, "group": GROUP, "evidence": EVIDENCE},
    "left": {"lease": LEASE},
    "groups": {},
    "failure": {"code": "rate_limit"},
    "read_claim": {"lease": LEASE},
    "read_complete": {"read": READ, "evidence": EVIDENCE, "ageMs": 0, "items": []},
    "read_failed": {"read": READ, "code": "timeout"},
    "sample": {"lease": LEASE, "pollId": encode_id(new_id()), "ageMs": 0, "memberCount": 7},
    "audit_claim": {"lease": LEASE},
    "audit_page": {
        "lease": LEASE,
        "scanId": encode_id(new_id()),
        "offset": 0,
        "rawCount": 0,
        "isLast": True,
    },
}


def spoilt_lease(**changes: Any) -> dict[str, Any]:
    """A failure's body whose lease is spoilt in one place."""
    return {"code": "network", "lease": {**LEASE, **changes}}
