"""Times and limits that both sides of the worker protocol keep. Each lives here once, its unit in its type."""

from __future__ import annotations

from datetime import timedelta

PROTOCOL_VERSION = 2
"""Sent as ``Lastcall-Protocol``; the server refuses a collector that speaks another one."""

PROTOCOL_MISMATCH = "protocol_mismatch"
"""The code of that refusal."""

GRACE = timedelta(minutes=15)
"""How long after its due time an operation may still be sent; the exact boundary is in time (RCV-04)."""

CLAIM_LIFE = timedelta(seconds=240)
"""The longest life of a claim; it never outlives the lease (WRK-17)."""

SUBMISSION_LIFE = timedelta(seconds=120)
"""From the authorization on: an outcome not known by then is recorded as unknown (WRK-17, RCV-01)."""

WORKER_EVIDENCE_AGE = timedelta(seconds=30)
"""The oldest evidence with which the collector still writes (BUD-05)."""

SERVER_EVIDENCE_AGE = timedelta(seconds=60)
"""The oldest evidence with which the server still authorizes (BUD-05)."""

IDENTITY_AGE = timedelta(seconds=30)
"""How long one proof of the account's identity serves all operations of that account."""

LEASE_LIFE = timedelta(minutes=5)
"""How long a lease lasts unless it is renewed."""

WAIT_LIFE = timedelta(seconds=300)
"""The longest that the server holds a collector's wait."""

SUBMISSIONS_MOST = 5000
"""Submissions that one hello tells at most."""

DUE_MOST = 50
"""Connections that one answer to a wait names at most."""

PASS_LIFE = timedelta(seconds=240)
"""How long one pass over a connection may go on taking new operations (WRK-16)."""

TRANSPORT_TIMEOUT = timedelta(seconds=15)
"""The total time around one request to the provider, from connecting to the last byte of the reply."""

CALL_TIMEOUT = timedelta(seconds=15)
"""The total time around one call to the server; a wait has ``WAIT_LIFE`` on top of it."""

TRANSIENT_RETRIES = 2
"""How often a definite transient preflight failure is tried again (WRK-18); the next one ends the operation."""

READ_FRESH = timedelta(seconds=60)
"""How long a provider read counts as fresh, from when VRChat was asked; at the boundary it is over."""

READ_BYTES_MOST = 500_000
"""The largest page of a provider read, as JSON. A collector cuts a longer one short; the rest comes on the next."""

KEEP_ALIVE = (timedelta(minutes=8), timedelta(minutes=12))
"""A session that asks nothing for so long is asked who it is, at a moment between the two."""

WAITING_LOOK = timedelta(minutes=3)
"""A connection that waits to be let into its group is looked at no sooner than this again."""

ACTIVE_LOOK = (timedelta(seconds=60), timedelta(seconds=120))
QUIET_LOOK = (timedelta(seconds=180), timedelta(seconds=300))
"""When a group's aggregates are read again: with people in its instances, and without."""

RETRY_DELAY_LEAST = timedelta(seconds=1)
RETRY_DELAY_USUAL = timedelta(seconds=60)
"""The delay of a deferral: the provider's own where it named one, else the usual; never below the least."""

LOCAL_WINDOW = timedelta(seconds=60)
"""The collector's own sliding window, charged for each real request (BUD-03)."""

RESERVATION_MOST = 10
"""The most requests that one reservation may ask for."""

BODY_BYTES_MOST = 2 * 1024 * 1024
"""The largest message either side reads."""

FEATURE_GRANTS: dict[str, str | None] = {
    "analytics": None,
    "membership_management": "group-members-manage",
    "posts": "group-announcement-manage",
    "instances": "group-instance-open-create",
}
"""The VRChat grant without which nothing of a feature can work, by the feature's name."""
