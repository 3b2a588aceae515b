"""What people are written about signing in and about changes to their account. Notices cannot be turned off:
they are how somebody learns that it was not them.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select

from lastcall.db.transaction import Transaction
from lastcall.mail.mailer import Mailer
from lastcall.mail.messages import Action, Mail
from lastcall.mail.words import say
from lastcall.people.tables import Person
from lastcall.people.tokens import code_of, shown_code

_LIFE = "The link and the code work once, for 15 minutes, in the browser that asked and in no other."
_CODE_LIFE = "The code works once, for 15 minutes, in the browser that asked and in no other."
_NOT_YOU = "If it was not you, do nothing. Tell the code to nobody: only the page that you opened yourself asks for it."


def sign_in_mail(to: str, token: str, name: str | None) -> Mail:
    """``name`` is the person's; ``None`` for somebody who has no account yet."""
    hello = say("Hello {name},", name=name) if name else say("Hello,")
    return Mail(
        kind="sign_in",
        to=to,
        subject=say("Sign in to Lastcall"),
        paragraphs=(hello, say("somebody asked to sign in with this address. If it was you, go on here:")),
        action=Action(say("Sign in"), f"/sign-in/{token}"),
        code=shown_code(code_of(token)),
        closing=(say(_LIFE), say(_NOT_YOU)),
    )


def step_up_mail(to: str, token: str, source: str) -> Mail:
    return Mail(
        kind="step_up",
        to=to,
        subject=say("Your code to confirm"),
        paragraphs=(say("Type this code to confirm that it is you:"),),
        code=shown_code(code_of(token)),
        closing=(say(_CODE_LIFE), say(_NOT_YOU)),
        source=source,
    )


def email_mail(to: str, token: str, name: str) -> Mail:
    return Mail(
        kind="email_change",
        to=to,
        subject=say("Your code for a new mail address"),
        paragraphs=(say("{name} wants to use this address to sign in. Type this code to agree:", name=name),),
        code=shown_code(code_of(token)),
        closing=(say(_CODE_LIFE), say(_NOT_YOU)),
    )


@dataclass(frozen=True)
class Notice:
    """Something that happened to an account, for its person to hear of. ``sentence`` may name values."""

    kind: str
    subject: str
    sentence: str


EMAIL_CHANGED = Notice(
    "email_changed", "Your mail address was changed", "Your account now uses another mail address: {email}."
)
TOKEN_CREATED = Notice(
    "api_token_created",
    "A new API token",
    "A token called “{name}” can now act for you, until you revoke it.",
)
RECOVERED = Notice(
    "recovered",
    "Your account was recovered",
    "Whoever runs the server ended all your sessions, tokens, passkeys and linked accounts, and made a new"
    " sign-in link.",
)


async def notify(
    tx: Transaction, mailer: Mailer, person_id: UUID, notice: Notice, *, to: str | None = None, **values: str
) -> None:
    """Write to the person once the caller's transaction is committed: to their address, or where it just was."""
    if to is None:
        to = await tx.scalar(select(Person.email).where(Person.id == person_id))
    if to is None:
        return
    await mailer.post(
        tx,
        Mail(
            kind=notice.kind,
            to=to,
            subject=say(notice.subject),
            paragraphs=(say(notice.sentence, **values),),
            action=Action(say("See your account"), "/me"),
            closing=(
                say("If it was not you, end all other sessions there and tell whoever runs the server."),
            ),
            is_security=True,
        ),
    )
