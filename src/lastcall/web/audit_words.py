"""The audit in words: what each kind of entry says. An entry of a kind unknown here is shown by its name rather
than hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WORDS = {
    "account.added": "Added a VRChat account",
    "account.auth_required": "An account must sign in to VRChat again",
    "account.cooldown": "An account is cooling down",
    "account.key_revoked": "Took an account's worker key away",
    "account.key_rotated": "Made a new worker key for an account",
    "account.kill_switch": "Threw an account's switch",
    "account.limit": "Set an account's limits",
    "account.state_set": "Set an account's state",
    "api_token.created": "Made an API token",
    "api_token.revoked": "Revoked an API token",
    "club.added": "Added a club",
    "club.deleted": "Deleted a club",
    "connection.kill_switch": "Threw a connection's switch",
    "connection.limit": "Set a connection's limit",
    "database.restored": "Said that the database went back in time",
    "fleet.kill_switch": "Threw the switch of all accounts",
    "fleet.limit": "Set the limit of all accounts",
    "identity.linked": "Linked an account for signing in",
    "identity.removed": "Unlinked an account for signing in",
    "passkey.added": "Added a passkey",
    "passkey.refused": "A passkey was refused: there may be a copy of it",
    "passkey.removed": "Removed a passkey",
    "person.added": "Was added",
    "person.blocked": "Was blocked",
    "person.confirmed": "Confirmed that it is them",
    "person.email_changed": "Changed the mail address",
    "person.erased": "Was erased",
    "person.exported": "Exported their data",
    "person.joined": "Joined by an invitation",
    "person.made_operator": "Was made an operator",
    "person.no_longer_operator": "Is no longer an operator",
    "person.recovered": "Was recovered: every way in was taken away",
    "person.renamed": "Changed the name",
    "person.session_ended": "Signed one browser out",
    "person.signed_in": "Signed in",
    "person.signed_out": "Signed out",
    "person.signed_out_everywhere": "Was signed out everywhere else",
    "person.unblocked": "Was unblocked",
    "sign_in_link.made": "Got a sign-in link from the command line",
    "sign_in_link.mailed": "Was mailed a sign-in link",
}


def words_for(action: str) -> str:
    return _WORDS.get(action, action)


def detail_words(details: Mapping[str, Any]) -> list[str]:
    """What an entry holds beside who, what and whom: a line each, ``way: passkey``."""
    return [f"{name.replace('_', ' ')}: {_value(value)}" for name, value in details.items()]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return str(value)
