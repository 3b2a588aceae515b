"""How often one source, or one person who is signed in, may look at invitations: too little to guess."""

from __future__ import annotations

from datetime import timedelta

from lastcall.db.limits import Limit

INVITE_LOOKUPS = Limit("invite_lookup", 60, timedelta(hours=1))
