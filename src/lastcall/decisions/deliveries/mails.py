"""A message as a mail."""

from __future__ import annotations

from lastcall.decisions.deliveries.kinds import Words
from lastcall.mail.messages import Action, Mail
from lastcall.mail.words import say


def message_mail(to: str, kind: str, slug: str, words: Words) -> Mail:
    """The words come from ``say`` already. The ledger counts each kind of message alone."""
    return Mail(
        kind=kind.replace(".", "_"),
        to=to,
        subject=words.subject,
        paragraphs=(words.sentence,),
        action=Action(words.action, f"/c/{slug}/{words.place}"),
        closing=(say("You choose on your account's page which of these mails you get."),),
    )
