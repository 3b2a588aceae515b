"""The steps of one operation on its way through the collector, as its observer sees them."""

from __future__ import annotations

from enum import StrEnum


class Step(StrEnum):
    """In the order in which they happen. The production observer logs them; the test kit stops at them."""

    CLAIM_ANSWERED = "claim_answered"
    PREFLIGHT_DONE = "preflight_done"
    AUTHORIZE_SENT = "authorize_sent"
    AUTHORIZE_ANSWERED = "authorize_answered"
    INTENT_FSYNCED = "intent_fsynced"
    FIRST_BYTE_OUT = "first_byte_out"
    REPLY_READ = "reply_read"
    ANSWER_FSYNCED = "answer_fsynced"
    COMPLETE_SENT = "complete_sent"
    COMPLETE_ANSWERED = "complete_answered"
