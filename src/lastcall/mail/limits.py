"""How much mail goes out at most. What is refused is not sent; a refusal of what strangers can ask for writes nothing
either, unless the whole server is over its limit, which its operator shall see.
"""

from __future__ import annotations

from datetime import timedelta

from lastcall.db.database import Database
from lastcall.db.limits import Limit, source_of, take

HOUR = timedelta(hours=1)

PER_SOURCE = Limit("mail_source", 20, HOUR)
"""From one address on the network, or one /64 of IPv6: an office or a venue behind one address still works."""
PER_ADDRESS = Limit("mail_address", 5, HOUR)
"""Of one kind to one mailbox: enough for a person who asks again, too little to flood somebody. Each kind counts
alone, so that strangers who ask for sign-in mails cannot keep a code from somebody who is signed in."""
WHOLE_SERVER = Limit("mail_server", 600, HOUR)
"""Of all together: what a mail provider takes from a small sender without calling it spam."""

SECURITY_PER_ADDRESS = Limit("mail_security_address", 20, HOUR)
SECURITY_WHOLE_SERVER = Limit("mail_security_server", 600, HOUR)
"""Notices about somebody's own account count apart from what anybody can ask for: else whoever used that up
could take an account over without its owner being told."""

_ALL = "all"


async def admit_asker(db: Database, address: str, source: str | None, kind: str) -> None:
    """Take one mail of this kind to ``address``, asked for by ``source``. Raises ``TooFast``.

    The source first, so that one who is over the limit cannot use up what an address has left.
    """
    if source is not None:
        await take(db, PER_SOURCE, source_of(source))
    await take(db, PER_ADDRESS, f"{kind} {address.lower()}")


async def admit_notice(db: Database, address: str) -> None:
    """Take one notice about their own account to ``address``. Raises ``TooFast``."""
    await take(db, SECURITY_PER_ADDRESS, address.lower())


async def admit_to_server(db: Database, *, is_security: bool) -> None:
    """Take one of what the whole server may send. Raises ``TooFast``."""
    await take(db, SECURITY_WHOLE_SERVER if is_security else WHOLE_SERVER, _ALL)
