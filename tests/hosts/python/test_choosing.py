"""The shortest program that chooses its product, and goes on under one intent: killed, started again, and again the next day."""

from pathlib import Path

import pytest
from sandbox import Sandbox
from test_readme import PROGRAMS, killed, ran

PROGRAMS.append("""import sys
from decimal import Decimal

import hopline
import requests

with hopline.AgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=20) as agent:
    cheapest = hopline.cheapest(type="dynamic", max_unit_price=5)
    with agent.open_session(product=cheapest, quantity=Decimal("0.5"), intent="prices", if_ended="buy", use_with="requests") as session:
        page = requests.get(sys.argv[1], **session.proxy.for_requests(), timeout=30)
        print(page.status_code, "for", session.charged_usd, "USD")
""")
CHOOSES = len(PROGRAMS) - 1


@pytest.mark.parametrize(("operation", "then"), [("list_products", "create_session"), ("create_session", "get_session"), ("get_session", "terminate_session")])
def test_it_goes_on_after_a_kill_and_buys_again_today_and_tomorrow(operation: str, then: str, sandbox: Sandbox, tmp_path: Path) -> None:
    site = sandbox.ready["target_url"]
    sandbox.fault(then, kind="delay", ms=15_000)
    killed(CHOOSES, sandbox, tmp_path, operation, site)
    assert ran(CHOOSES, sandbox, tmp_path, site) == "200 for 2 USD\n" and sandbox.charges() == 1
    # The session is over, so the next start buys the next one.
    assert ran(CHOOSES, sandbox, tmp_path, site) == "200 for 2 USD\n" and sandbox.charges() == 2
    sandbox.control("clock", {"advance_ms": 24 * 3_600_000})
    assert ran(CHOOSES, sandbox, tmp_path, site) == "200 for 2 USD\n" and sandbox.charges() == 3
    assert {session["status"] for session in sandbox.state()["sessions"]} == {"terminated"}
