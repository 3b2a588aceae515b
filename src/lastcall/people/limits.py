"""How often one source may try what needs no account: enough for a venue behind one address, too little to
guess."""

from __future__ import annotations

from datetime import timedelta

from lastcall.db.limits import Limit

SIGN_IN_REQUESTS = Limit("sign_in_request", 60, timedelta(hours=1))
"""Mails asked for from one source; those that go out have limits of their own in ``mail``."""
CODE_ATTEMPTS = Limit("sign_in_code", 30, timedelta(hours=1))
"""Codes typed at one source, right ones too. A code has 40 bits, lives for 15 minutes and bears five wrong
ones."""
