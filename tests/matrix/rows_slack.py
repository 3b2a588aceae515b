"""Functions on a club's Slack. Its club has none, so that what goes by a link or by Slack's answer ends there."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.matrix.cases import Who, row
from tests.matrix.world import World

from lastcall.access.slack import installing, linking
from lastcall.access.slack.api import SlackApi
from lastcall.access.slack.installing import Slack
from lastcall.access.slack.vault import Vault
from lastcall.clubs.permissions import Permission
from lastcall.people.scopes import Scope

BROWSER = b"b" * 32
UNKNOWN = "slack_link_unknown"


def app() -> Slack:
    api = SlackApi("id", "secret", "signing", "http://127.0.0.1:1")
    return Slack(api, Vault(Path(mkdtemp())), "http://localhost/slack/installed")


def begin(w: World, _: Any, actor: Any) -> Any:
    return installing.begin_install(w.db, app(), actor, w.club_id, w.roles["spare"], BROWSER)


def by_link(function: Any) -> Any:
    return row(function, Who.SELF, Scope.ACCESS, lambda w, _, a: function(w.db, a, "x"), answer=UNKNOWN)


SLACK = [
    row(
        installing.slack_of,
        Who.STAFF,
        Scope.READ,
        lambda w, tx, a: installing.slack_of(tx, a, w.club_id),
    ),
    row(installing.begin_install, Who.STAFF, Scope.ACCESS, begin, Permission.MANAGE_STAFF),
    row(
        installing.finish_install,
        Who.SELF,
        Scope.ACCESS,
        lambda w, _, a: installing.finish_install(w.db, app(), a, "code", "state", BROWSER),
        answer="slack_state_wrong",
    ),
    row(
        installing.remove_install,
        Who.STAFF,
        Scope.ACCESS,
        lambda w, _, a: installing.remove_install(w.db, None, a, w.club_id),
        Permission.MANAGE_STAFF,
    ),
    row(
        linking.preview_link,
        Who.ANYBODY,
        None,
        lambda _, tx, a: linking.preview_link(tx, "x", a),
        answer=UNKNOWN,
        no_actor=UNKNOWN,
    ),
    by_link(linking.request_access),
    by_link(linking.confirm_link),
    row(linking.unlink, Who.SELF, Scope.ACCESS, lambda w, _, a: linking.unlink(w.db, a, w.club_id)),
]
