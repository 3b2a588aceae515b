"""What deliveries hang on others; the room's registration calls it."""

from __future__ import annotations

from lastcall.decisions.deliveries.kinds import declare_kind
from lastcall.decisions.deliveries.personal import RULES, SOURCES
from lastcall.decisions.deliveries.words import ASKED, KINDS, WAITING
from lastcall.people.data_retention import keep
from lastcall.people.personal_data import holds
from lastcall.people.preferences import declare_topic


def register() -> None:
    """Say what is kept of what people were told, what they choose mails by, and what each kind of message says.
    Registering twice is once."""
    holds(*SOURCES)
    keep(*RULES)
    for topic in (ASKED, WAITING):
        declare_topic(topic)
    declare_kind(*KINDS)
