"""Sign in with Slack: OpenID at known addresses, where a person's id counts within their workspace."""

from __future__ import annotations

from typing import Any

from lastcall.people.providers.discovery import Endpoints
from lastcall.people.providers.openid import OpenId
from lastcall.people.providers.provider import Profile, clean_label, is_subject
from lastcall.people.providers.transport import ProviderFault

ISSUER = "https://slack.com"
ENDPOINTS = Endpoints(
    authorization="https://slack.com/openid/connect/authorize",
    token="https://slack.com/api/openid.connect.token",  # noqa: S106 - an address
    keys="https://slack.com/openid/connect/keys",
    secret_in_form=True,
)
"""What Slack publishes at https://slack.com/.well-known/openid-configuration."""
TEAM, USER = "https://slack.com/team_id", "https://slack.com/user_id"


class Slack(OpenId):
    """The nonce in the ID token guards the code here; Slack takes PKCE only from apps that were made for it."""

    has_pkce = False

    def profile(self, claims: dict[str, Any]) -> Profile:
        team, user = claims.get(TEAM), claims.get(USER, claims["sub"])
        if not is_subject(team) or not is_subject(user):
            raise ProviderFault("the ID token names no workspace")
        return Profile(ISSUER, f"{team}/{user}", clean_label(claims.get("name")))
