"""What people type into names and addresses stays text: it adds no header, no recipient, no markup, no link."""

from __future__ import annotations

import email
import email.policy
from datetime import UTC, datetime
from email.headerregistry import Address
from typing import Any

import pytest
from tests.mail.conftest import PUBLIC_URL, SAM, a_mail

import lastcall.mail.layout as layout
from lastcall.db.ids import new_id
from lastcall.errors import Invalid
from lastcall.mail.addresses import valid_address
from lastcall.mail.layout import Layout, id_of_message
from lastcall.mail.messages import Action
from lastcall.mail.server import Security, mail_server
from lastcall.mail.words import harmless, say

NOW = datetime(2026, 3, 1, 20, tzinfo=UTC)
HOUSE = Layout(Address("Night Shift", addr_spec="lastcall@club.example"), PUBLIC_URL)
HEADERS = [
    *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted"),
    *("MIME-Version", "Content-Type"),
]

CRUEL = [
    "Sam\r\nBcc: robin@example.org",
    "Sam\nContent-Type: text/html\n\n<script>alert(1)</script>",
    "Sam\x00\x0b\x85\u2028\u2029Bcc: robin@example.org",
    "=?utf-8?q?Sam=0D=0ABcc:_robin=40example.org?=",
    "==???utf-8?b?DQpCY2M6IHJvYmluQGV4YW1wbGUub3Jn?=",
    "\u202eelpmaxe@nibor\u202c \u2066x\u2069 \u200fy\u061cz",
    "<img src=x onerror=alert(1)>\"'&<a href=https://evil.example>",
    "{0} {name} {mail.__class__} %s {{ 7 * 7 }}",
    "x" * 3000,
    "\ud800 half of a pair",
]


def sent(**changes: Any) -> tuple[Any, str]:
    raw = HOUSE.render(a_mail(**changes), new_id(), NOW).as_bytes()
    return email.message_from_bytes(raw, policy=email.policy.default), raw.decode("ascii")


@pytest.mark.parametrize("cruel", CRUEL)
def test_no_text_of_people_adds_a_header_a_recipient_or_markup(cruel: str) -> None:
    sentence = say("{name} invited you to {club}.", name=cruel, club="Night Shift")
    message, raw = sent(
        subject=sentence, paragraphs=(sentence,), action=Action(harmless(cruel), "/invites/abc")
    )
    assert list(message.keys()) == HEADERS
    assert message["To"] == SAM
    assert len(str(message["Subject"])) <= layout.SUBJECT_LENGTH
    head = raw.partition("\r\n\r\n")[0]
    assert all(line.startswith((*HEADERS, " ", "\t")) for line in head.split("\r\n"))
    assert max(map(len, raw.split("\r\n"))) <= 998  # RFC 5322
    assert {part.get_content_type() for part in message.walk()} == {
        "multipart/alternative",
        "text/plain",
        "text/html",
    }
    text = message.get_body(("plain",)).get_content()
    html = message.get_body(("html",)).get_content()
    for turning in "\u202e\u202c\u2066\u200f\u061c\x00":
        assert turning not in text + html + str(message["Subject"])
    assert "<script" not in html
    assert "<img" not in html
    assert html.count("<a ") == 1
    assert f'<a href="{PUBLIC_URL}/invites/abc"' in html
    assert "://evil" not in text + html, "no mail program makes a link of it"


def test_without_the_rules_for_subjects_and_names_they_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twins: the header's own parser decodes what stands encoded in it, and a turned name turns the rest."""
    monkeypatch.setattr(layout, "_subject", str)
    with pytest.raises(ValueError, match="linefeed"):
        sent(subject=CRUEL[0])
    hidden, _ = sent(subject="=?utf-8?q?Your_account_at_evil=2Eexample?=")
    assert str(hidden["Subject"]) == "Your account at evil.example"
    monkeypatch.setattr(layout, "one_line", str)
    turned, _ = sent(paragraphs=(f"{CRUEL[5]} invited you.",))
    assert "\u202e" in turned.get_body(("plain",)).get_content()


def test_a_name_from_right_to_left_stays_in_its_place() -> None:
    assert say("{name} invited you.", name="דנה") == "\u2068דנה\u2069 invited you."
    assert say("{name} invited you.", name="Dana 🧑‍🍳 O, St. Pauli") == "Dana 🧑‍🍳 O, St. Pauli invited you."


def test_an_action_leads_to_a_path_of_our_own() -> None:
    for path in ("https://evil.example/", "//evil.example/", "evil", "/a\r\nb", "/\\evil.example", ""):
        with pytest.raises(ValueError, match="path of our own"):
            sent(action=Action("Sign in", path))


@pytest.mark.parametrize(
    "address",
    [
        *(
            "sam",
            "@example.org",
            "sam@",
            "sam@@example.org",
            "sam@example.org,robin@example.org",
            "a b@c.org",
        ),
        *("<sam@example.org>", "Sam <sam@example.org>", '"sam"@example.org', "sam@example.org\nBcc: x@y.org"),
        *(
            "sam@[192.0.2.1]",
            "sam@-x.org",
            "sam@x..org",
            "sam.@x.org",
            "sam\u202e@x.org",
            "såm@x.org",
            "sam@ .",
        ),
        *(
            f"{'x' * 65}@example.org",
            f"sam@{'x' * 64}.org",
            f"sam@{'x.' * 130}org",
            "sam(comment)@example.org",
        ),
    ],
)
def test_an_address_is_one_plain_mailbox(address: str) -> None:
    with pytest.raises(Invalid, match="not an e-mail address"):
        valid_address(address)


def test_what_many_people_have_is_an_address() -> None:
    assert valid_address(" Sam.O'Neill+club@Example.org ") == "Sam.O'Neill+club@Example.org"
    assert valid_address("sam@bücher.example") == "sam@xn--bcher-kva.example"


def test_a_mail_is_found_again_by_its_message_id() -> None:
    mail_id = new_id()
    raw = HOUSE.render(a_mail(), mail_id, NOW).as_string()
    assert id_of_message(raw) == mail_id
    assert id_of_message("Message-ID: <lastcall.zzzzzzzzzzzzzzzzzzzzzzzzzz@club.example>") is None
    assert id_of_message("Message-ID: <other@club.example>") is None


@pytest.mark.parametrize(
    ("url", "sender", "says"),
    [
        ("http://localhost", "a@b.org", "mail_url is no address of a mail server"),
        ("smtp://", "a@b.org", "mail_url is no address of a mail server"),
        ("smtp://localhost:x", "a@b.org", "mail_url is no address of a mail server"),
        ("smtp://localhost/path?x=1", "a@b.org", "mail_url is no address of a mail server"),
        ("smtps://user@smtp.example.org", "a@b.org", "mail_url has only one of user and password"),
        ("smtp://user:hunter2@smtp.example.org", "a@b.org", "would send its password unencrypted"),
        ("smtps://user:hunter2@smtp.example.org", None, "mail_from is needed"),
        ("smtp://localhost", "nobody", "mail_from is no sender"),
        ("smtp://localhost", "Sam <a@b.org>, Robin <c@d.org>", "mail_from is no sender"),
    ],
)
def test_a_wrong_mail_setting_is_named_and_its_password_is_not(
    url: str, sender: str | None, says: str
) -> None:
    with pytest.raises(Invalid, match=says) as refused:
        mail_server(url, sender)
    assert "hunter2" not in refused.value.sentence + refused.value.advice


def test_a_mail_server_is_shown_without_its_password() -> None:
    server = mail_server("smtp+starttls://us%40er:hun%2Fter@smtp.example.org", "lastcall@club.example")
    assert server is not None
    assert (server.port, server.security, server.username) == (587, Security.STARTTLS, "us@er")
    assert server.password == "hun/ter"
    assert "hun" not in repr(server) + server.shown
    assert str(server.sender) == "Lastcall <lastcall@club.example>"
