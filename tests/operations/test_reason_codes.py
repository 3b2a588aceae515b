"""The reason codes that the contract names are all in the registry, and what the collector may say it does say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lastcall
from lastcall.operations.codes import REASONS, UNRECOGNIZED, known
from lastcall.protocol.outcomes import Code

ROOT = Path(lastcall.__file__).parent

OF_THE_SERVER = [
    "staff_permission",
    "feature_disabled",
    "integration_inactive",
    "provider_authority",
    "provider_permissions",
    "protected_target",
    "role_not_assignable",
    "invalid_instance_options",
    "recipient_eligibility",
    "connection_changed",
    "event_cancelled",
    "event_deleted",
    "event_time_tba",
    "event_rescheduled",
    "late_window_elapsed",
    "submission_outcome_unknown",
    "instance_creation_rescheduled",
    "instance_creation_failed",
    "dependency_unavailable",
    "dependency_destination_unavailable",
    "awaiting_instance_creation",
    "preflight_retries_exhausted",
    "cancelled_by_staff",
    "claim_unavailable",
]
OF_THE_WORKER = [
    "operation_budget_too_low",
    "submission_not_attempted",
    "timeout",
    "network",
    "rate_limit",
    "transient",
    "provider_unavailable",
    "authentication",
    "membership",
    "provider_permissions",
    "protected_target",
    "role_scope",
    "group_visibility",
    "friendship",
    "destination_closed",
    "destination_scope",
    "provider_scope",
    "schema_drift",
    "visibility",
    "provider_error",
    "operation_denied",
    "invalid_input",
    "unsupported_operation",
    "preflight_failed",
]
"""Facts 2.3 and 2.4."""

RENAMED = {"integration_inactive": "connection_inactive"}
"""Our word for the same."""
NEVER_SAID = {"operation_denied"}
"""The refusal of an authorization settles the row itself, under the refusal's own code; the worker adds none."""


def test_every_code_of_the_contract_is_in_the_registry() -> None:
    asked = {RENAMED.get(code, code) for code in [*OF_THE_SERVER, *OF_THE_WORKER]} - NEVER_SAID
    assert asked - set(REASONS) == set()
    assert NEVER_SAID & set(REASONS) == set()


@pytest.mark.parametrize("code", sorted(REASONS))
def test_a_label_fits_in_a_row_and_the_advice_is_a_sentence(code: str) -> None:
    reason = REASONS[code]
    assert 0 < len(reason.label) <= 60
    assert reason.label[0].isupper()
    assert not reason.label.endswith(".")
    assert reason.advice.endswith((".", "?"))
    assert len(reason.advice) > len("Nothing to do.") - 1


def test_what_the_protocol_says_the_collector_says_it_does_say() -> None:
    """``provider_unavailable`` is taken from other collectors; ours says ``transient``."""
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for room in ("collector", "vrchat")
        for path in sorted((ROOT / room).rglob("*.py"))
    )
    said = set(re.findall(r"\bCode\.([A-Z_]+)", text))
    assert {code.name for code in Code} - said == {"PROVIDER_UNAVAILABLE"}


def test_a_code_of_a_newer_collector_is_kept_as_unrecognized() -> None:
    assert known("from_the_future") == UNRECOGNIZED
    assert known("timeout") == "timeout"
