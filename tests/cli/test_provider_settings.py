"""Providers come from tables and the environment, and a wrong one stops the start with its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lastcall.errors import Invalid
from lastcall.provider_settings import ProviderKind
from lastcall.settings import load

TABLES = """
[providers.guild]
kind = "discord"
client_id = "1"
client_secret = "from the file"

[providers.house]
kind = "openid"
label = "House ID"
issuer = "https://id.example.org/realm"
client_id = "lastcall"
"""


def test_tables_and_the_environment_make_providers_and_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / "lastcall.toml").write_text(TABLES)
    environment = {
        "LASTCALL_PROVIDER_HOUSE_CLIENT_SECRET": "hidden",
        "LASTCALL_PROVIDER_GUILD_CLIENT_ID": "2",
        "LASTCALL_PROVIDER_TEAM_KIND": "slack",
        "LASTCALL_PROVIDER_TEAM_CLIENT_ID": "3",
        "LASTCALL_PROVIDER_TEAM_CLIENT_SECRET": "hidden too",
    }
    settings = load(environment, tmp_path)
    guild, house, team = settings.providers
    assert (guild.name, guild.kind, guild.client_id, guild.label) == (
        "guild",
        ProviderKind.DISCORD,
        "2",
        "Discord",
    )
    assert (house.kind, house.issuer, house.label) == (
        ProviderKind.OPENID,
        "https://id.example.org/realm",
        "House ID",
    )
    assert (team.kind, team.client_secret, team.private_network) == (ProviderKind.SLACK, "hidden too", False)
    assert "hidden" not in repr(settings)
    assert "from the file" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("HOUSE_KIND", "saml", "must be one of openid, discord, slack, not 'saml'"),
        ("HOUSE_ISUER", "https://id.example.org", "nearest one is issuer"),
        ("HOUSE_ISSUER", "http://id.example.org", "must be an address like https://id.example.org"),
        ("HOUSE_ISSUER", "https://someone@id.example.org", "must be an address like https://id.example.org"),
        ("HOUSE_PRIVATE_NETWORK", "perhaps", "must be true or false"),
        ("GUILD_ISSUER", "https://id.example.org", "whose addresses are known"),
        ("GUILD_CLIENT_SECRET", " ", "LASTCALL_PROVIDER_GUILD_CLIENT_SECRET must be text"),
        ("OTHER_KIND", "discord", "The provider other has no client_id"),
        ("9_KIND", "discord", "must be a small letter"),
    ],
)
def test_a_wrong_provider_is_refused_with_its_name(tmp_path: Path, name: str, value: str, says: str) -> None:
    (tmp_path / "lastcall.toml").write_text(TABLES)
    with pytest.raises(Invalid) as refused:
        load({"LASTCALL_PROVIDER_HOUSE_CLIENT_SECRET": "s", f"LASTCALL_PROVIDER_{name}": value}, tmp_path)
    assert says in refused.value.sentence


def test_providers_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "lastcall.toml").write_text('providers = "discord"\n')
    with pytest.raises(Invalid, match=r"must be tables like \[providers\.name\]"):
        load({}, tmp_path)
    (tmp_path / "lastcall.toml").write_text('[providers]\ndiscord = "yes"\n')
    with pytest.raises(Invalid, match=r"\[providers\.discord\] in .* must be a table"):
        load({}, tmp_path)


def test_plain_http_is_let_through_for_a_provider_in_ones_own_network_alone(tmp_path: Path) -> None:
    environment = {
        "LASTCALL_PROVIDER_HOUSE_KIND": "openid",
        "LASTCALL_PROVIDER_HOUSE_ISSUER": "http://id.internal:8080",
        "LASTCALL_PROVIDER_HOUSE_CLIENT_ID": "lastcall",
        "LASTCALL_PROVIDER_HOUSE_CLIENT_SECRET": "hidden",
    }
    with pytest.raises(Invalid):
        load(environment, tmp_path)
    (house,) = load(environment | {"LASTCALL_PROVIDER_HOUSE_PRIVATE_NETWORK": "yes"}, tmp_path).providers
    assert house.private_network
