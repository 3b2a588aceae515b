"""The settings of a collector's further accounts: a table ``[accounts.<name>]`` each, or
``LASTCALL_ACCOUNT_<NAME>_…``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from lastcall.settings_tables import Given, Tables


@dataclass(frozen=True)
class AccountSettings:
    """One VRChat account that a collector runs."""

    name: str
    """What the collector calls it when it asks for its sign-in; letters and digits."""
    id: str
    """The account's id, as `lastcall account add` printed it."""
    worker_key: str = field(repr=False)
    """The key of that account, printed with it."""
    username: str | None = None
    """The account's user name at VRChat, for a sign-in without a person at the terminal."""
    password: str | None = field(default=None, repr=False)
    """Its password; it is used to sign in and kept nowhere."""
    totp_secret: str | None = field(default=None, repr=False)
    """The secret of its authenticator app, from which its codes are made."""


_TABLES = Tables("account", "An", tuple(item.name for item in fields(AccountSettings) if item.name != "name"))
ACCOUNT_PREFIX = _TABLES.prefix


def accounts_of(
    tables: Mapping[str, Any], environment: Mapping[str, str], file_name: str
) -> tuple[AccountSettings, ...]:
    """Every account, in the order of their names. Raises ``Invalid`` naming the setting and its place."""
    given = _TABLES.read(tables, environment, file_name)
    return tuple(_account(name, values) for name, values in given.items())


def _account(name: str, given: Given) -> AccountSettings:
    texts = {key: _TABLES.text(source, value) for key, (source, value) in given.items()}
    for key in ("id", "worker_key"):
        if key not in texts:
            raise _TABLES.wrong(
                f"The account {name} has no {key}.",
                "`lastcall account add` prints an account's id and its worker key.",
            )
    if ("username" in texts) != ("password" in texts):
        raise _TABLES.wrong(
            f"The account {name} needs both username and password, or neither.",
            "Without them the collector asks at the terminal when it has to sign in.",
        )
    return AccountSettings(name=name, **texts)
