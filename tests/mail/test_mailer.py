"""Each mail is tried at most once, after what it tells of is committed, and its row says what became of it."""

from __future__ import annotations

from lastcall.mail.mailer import Mailer
from lastcall.mail.messages import Action, Mail
from lastcall.testing.mail import MailSink

SAM = "sam@example.org"


def a_mail(to: str = SAM) -> Mail:
    return Mail(
        kind="sign_in",
        to=to,
        subject="Sign in to Lastcall",
        paragraphs=("Somebody asked to sign in with this address.",),
        action=Action("Sign in", "/sign-in/abc"),
        code="K7Q2-9XWM",
        closing=("It works once, for 15 minutes.",),
    )


async def test_a_mail_arrives_as_text_and_html_of_one_content(mailer: Mailer, sink: MailSink) -> None:
    await mailer.post(None, a_mail())
    mail = await sink.mail_to(SAM)
    assert (mail.sender, mail.recipients) == ("lastcall@club.example", [SAM])
    assert mail.subject == "Sign in to Lastcall"
    assert (mail.link, mail.path, mail.code) == (
        "https://lastcall.club.example/sign-in/abc",
        "/sign-in/abc",
        "K7Q2-9XWM",
    )
    for part in (mail.text, mail.html):
        assert "Somebody asked to sign in with this address." in part
        assert "https://lastcall.club.example/sign-in/abc" in part
        assert "K7Q2-9XWM" in part
        assert "It works once, for 15 minutes." in part
