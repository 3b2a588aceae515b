"""What can become of a mail. It is tried at most once: a mail that may have left is never sent again."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

UNKNOWN_AFTER = timedelta(hours=1)
"""A row that is still ``sending`` after this was left by a process that ended in between: its outcome is
unknown. An attempt itself takes seconds."""
OVER_LIMIT = "over the limit"
"""The error of a mail that is ``FAILED`` because a limit held it back: no mail server was asked."""


class MailState(StrEnum):
    SENDING = "sending"
    SENT = "sent"
    """The mail server took it. Whether it arrived is another matter: it may bounce later."""
    FAILED = "failed"
    """It certainly did not leave."""
    UNKNOWN = "unknown"
    """The connection ended after the mail was handed over and before the server said yes or no."""
