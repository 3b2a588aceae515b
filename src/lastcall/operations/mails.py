"""What operations write to people: that something did not end well, and where to look. Nothing of what was to be sent,
to whom, or what VRChat said: mail is read on many screens.
"""

from __future__ import annotations

from lastcall.mail.messages import Action, Mail
from lastcall.mail.words import say
from lastcall.operations.machine import State
from lastcall.people.preferences import Topic

ENDED_BADLY = Topic("operations", "an action under my name fails, is missed or ends unknown")

_ONE = {
    State.REJECTED: ("An action failed", "An action in {club} failed."),
    State.MISSED: ("An action missed its time", "An action in {club} could not be sent in time."),
    State.INDETERMINATE: (
        "The outcome of an action is unknown",
        "An action in {club} may or may not have been sent. Nothing is sent again until somebody has looked.",
    ),
}
_SEVERAL = {
    State.REJECTED: ("Actions failed", "{count} actions in {club} failed."),
    State.MISSED: ("Actions missed their time", "{count} actions in {club} could not be sent in time."),
    State.INDETERMINATE: (
        "The outcome of actions is unknown",
        "{count} actions in {club} may or may not have been sent. Nothing is sent again until somebody has looked.",
    ),
}


def ended_badly(to: str, club: str, slug: str, outcome: State, count: int, place: str) -> Mail:
    """``count`` notices of one batch and one ``outcome``; ``place`` is the page of the club that shows them."""
    subject, sentence = (_ONE if count == 1 else _SEVERAL)[outcome]
    return Mail(
        kind="operation_notice",
        to=to,
        subject=say(subject),
        paragraphs=(say(sentence, club=club, count=str(count)),),
        action=Action(say("See what happened"), f"/c/{slug}/{place}"),
        closing=(say("You choose on your account's page which of these mails you get."),),
    )
