"""The hint that a deadline may have changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

IN_DOUBT = timedelta(seconds=60)
"""How long after a signal with a deadline the scheduler holds on to it whatever it reads.

A hot step that is its own transaction sends its signal before its one statement, so a read may begin after
the signal and still not see the row. Twice the time limit of a statement covers it. Such a step's deadline
must therefore lie at least this far in the future; a nearer one is signalled when the step has returned.
"""


@dataclass(frozen=True, slots=True)
class Signal:
    """``owner`` may have a new deadline: publish it in the transaction that makes it so (``tx.publish``).

    With ``deadline`` (database time) the saved one is only lowered, which costs no SQL. Without it the owner
    is dirty: its deadline is read again, at most once in 30 seconds. Use that when a deadline went away or
    moved to later, or when the new one is not known. A signal is never a fact: one too many costs a read, and
    the rows decide.
    """

    owner: str
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """Messages of other processes may have been lost: whoever lives by them forgets what it holds and reads
    anew.

    Delivered on the local bus each time the wake channel is up again, once a day while it is (a process may
    die between its commit and its notification), and never without a wake channel.
    """
