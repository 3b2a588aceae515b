"""How often one source, or one person who is signed in, may look at invitations: too little to guess."""

from __future__ import annotations

from datetime import timedelta

from lastcall.db.limits import Limit

INVITE_LOOKUPS = Limit("invite_lookup", 60, timedelta(hours=1))
SLACK_COMMANDS = Limit("slack_command", 20, timedelta(hours=1))
"""Of one sender in Slack; each makes a link."""
AGENT_JOINS = Limit("agent_join", 30, timedelta(hours=1))
AGENT_CLAIMS = Limit("agent_claim", 120, timedelta(hours=1))
"""Agents ask before they have a key, so these count by source. A claim is asked for again until somebody decided."""
