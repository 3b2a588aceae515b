"""What a room says in a mail: texts and one thing to do. How it looks is ``layout``'s business."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Action:
    """The one button. ``path`` is a path of our own (``/sign-in/…``): the server's public address is put in
    front by the mailer, and no request can influence it.
    """

    label: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Mail:
    """One mail to one address. Texts come from ``words.say``, which makes names in them harmless."""

    kind: str
    """What the ledger calls it: ``sign_in``, ``invite``, ``passkey_added``, …"""
    to: str
    subject: str
    paragraphs: tuple[str, ...]
    action: Action | None = None
    code: str | None = None
    """Characters to type elsewhere, shown large."""
    closing: tuple[str, ...] = ()
    """Paragraphs below the button and the code: how long they are good for, who asked."""
    source: str | None = None
    """The address (``client_address``) whose request caused this mail; it counts against that source's limit."""
    is_security: bool = False
    """A notice about somebody's own account. It has limits of its own, so that nobody can use the others up to
    keep it from being sent."""
