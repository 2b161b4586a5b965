"""The shortest program that chooses its product, and goes on under one intent: killed, started again, and again the next day."""

from pathlib import Path

import pytest
from sandbox import Sandbox
from test_readme import SHORTEST, killed, ran

@pytest.mark.parametrize(
    ("operation", "then", "kind"),
    [("list_products", "create_session", "delay"), ("create_session", "get_session", "delay"), ("get_session", "terminate_session", "in_progress")],
)
def test_it_goes_on_after_a_kill_and_buys_again_today_and_tomorrow(
    operation: str, then: str, kind: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    site = sandbox.ready["target_url"]
    # So that it is killed before the next step: a request to end its session does not end it for an hour.
    sandbox.fault(then, kind=kind, ms=3_600_000)
    killed(SHORTEST, sandbox, tmp_path, operation, site)
    sandbox.forget_faults()
    assert ran(SHORTEST, sandbox, tmp_path, site) == "200 for 2 USD\n" and sandbox.charges() == 1
    # The session is over, so the next start buys the next one.
    assert ran(SHORTEST, sandbox, tmp_path, site) == "200 for 2 USD\n" and sandbox.charges() == 2
    sandbox.control("clock", {"advance_ms": 24 * 3_600_000})
    assert ran(SHORTEST, sandbox, tmp_path, site) == "200 for 2 USD\n" and sandbox.charges() == 3
    assert {session["status"] for session in sandbox.state()["sessions"]} == {"terminated"}
