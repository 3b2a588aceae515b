"""Every room's tests use the test kit's database."""

from __future__ import annotations

pytest_plugins = ["lastcall.testing.database"]
