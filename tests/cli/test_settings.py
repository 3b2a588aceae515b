"""Settings: read from both places, checked, and never ignored in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from lastcall.errors import Invalid
from lastcall.settings import Settings, load


def test_the_environment_wins_over_the_file_and_an_option_over_both(tmp_path: Path) -> None:
    (tmp_path / "lastcall.toml").write_text('port = 9001\nhost = "0.0.0.0"\nwake_channel = true\n')
    settings = load({"LASTCALL_PORT": "9002"}, tmp_path)
    assert (settings.port, settings.host, settings.wake_channel) == (9002, "0.0.0.0", True)
    assert load({"LASTCALL_PORT": "9002"}, tmp_path, port=9003).port == 9003
    assert load({"LASTCALL_PORT": "9002"}, tmp_path, port=None).port == 9002


def test_without_anything_set_the_documented_values_hold(tmp_path: Path) -> None:
    settings = load({}, tmp_path)
    assert settings == Settings()
    assert (settings.host, settings.port, settings.simulator_port) == ("127.0.0.1", 8420, 8421)
    assert settings.public_url == "http://localhost:8420"
    assert not settings.is_https


def test_the_public_address_follows_the_port_until_it_is_set_itself(tmp_path: Path) -> None:
    assert load({"LASTCALL_PORT": "9002"}, tmp_path).public_url == "http://localhost:9002"
    named = {"LASTCALL_PORT": "9002", "LASTCALL_PUBLIC_URL": "https://club.example.org"}
    assert load(named, tmp_path).public_url == "https://club.example.org"
    assert load(named, tmp_path).is_https


@pytest.mark.parametrize(
    ("environment", "named", "nearest"),
    [
        ({"LASTCALL_PROT": "1"}, "LASTCALL_PROT", "LASTCALL_PORT"),
        ({"LASTCALL_DATABASE_URL": "x"}, "LASTCALL_DATABASE_URL", "DATABASE_URL"),
        ({"LASTCALL_WAKE_CHANEL": "1"}, "LASTCALL_WAKE_CHANEL", "LASTCALL_WAKE_CHANNEL"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_nearest_known_one(
    tmp_path: Path, environment: dict[str, str], named: str, nearest: str
) -> None:
    with pytest.raises(Invalid) as refused:
        load(environment, tmp_path)
    assert named in refused.value.sentence
    assert f"nearest one is {nearest}." in refused.value.sentence


def test_an_unknown_name_in_the_file_is_refused_and_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "lastcall.toml").write_text("prot = 1\n")
    with pytest.raises(Invalid, match=r"no setting prot \(in .*lastcall\.toml\); the nearest one is port"):
        load({}, tmp_path)


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"LASTCALL_PORT": "eighty"}, "LASTCALL_PORT must be a whole number, not 'eighty'"),
        ({"LASTCALL_PORT": "70000"}, "LASTCALL_PORT must be a port from 1 to 65535"),
        ({"LASTCALL_WAKE_CHANNEL": "maybe"}, "LASTCALL_WAKE_CHANNEL must be true or false, not 'maybe'"),
        ({"LASTCALL_PUBLIC_URL": "example.org"}, "LASTCALL_PUBLIC_URL must be an address like https://"),
        ({"LASTCALL_PUBLIC_URL": "https://club..example"}, "LASTCALL_PUBLIC_URL must be an address like"),
        ({"LASTCALL_PUBLIC_URL": "http://[::1"}, "LASTCALL_PUBLIC_URL must be an address like"),
        ({"LASTCALL_SERVER_URL": "http://club.example:70000"}, "LASTCALL_SERVER_URL must be an address like"),
        ({"LASTCALL_PUBLIC_URL": "https://example.org/club"}, "must be an address without a path"),
        ({"LASTCALL_HOST": " "}, "LASTCALL_HOST must be text"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_its_name(
    tmp_path: Path, environment: dict[str, str], says: str
) -> None:
    with pytest.raises(Invalid) as refused:
        load(environment, tmp_path)
    assert says in refused.value.sentence


def test_a_wrong_secret_is_refused_without_being_repeated(tmp_path: Path) -> None:
    (tmp_path / "lastcall.toml").write_text("worker_key = 12345\n")
    with pytest.raises(Invalid) as refused:
        load({}, tmp_path)
    assert "worker_key" in refused.value.sentence
    assert "12345" not in refused.value.sentence


def test_secrets_stay_out_of_the_settings_own_text(tmp_path: Path) -> None:
    settings = load({"LASTCALL_WORKER_KEY": "lck_secret", "LASTCALL_VRCHAT_PASSWORD": "hunter"}, tmp_path)
    assert settings.worker_key == "lck_secret"
    assert "lck_secret" not in repr(settings)
    assert "hunter" not in repr(settings)


def test_a_file_that_is_not_toml_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "lastcall.toml").write_text("port 9001")
    with pytest.raises(Invalid, match=r"settings file .*lastcall\.toml is not valid TOML"):
        load({}, tmp_path)
