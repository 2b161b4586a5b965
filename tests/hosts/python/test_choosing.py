"""The shortest program that chooses its product, and goes on under one intent: killed, started again, and again the next day. And pools."""

from decimal import Decimal
from pathlib import Path

import hopline
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


def test_a_pool_takes_the_cheapest_product_for_each_purchase_and_the_next_one_where_that_is_sold_out(sandbox: Sandbox, tmp_path: Path) -> None:
    cheapest = hopline.cheapest(type="dynamic", max_unit_price=Decimal("4.3"))
    with (
        hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path), daily_cap_usd=100) as agent,
        agent.open_pool("shop", size=3, product=cheapest) as pool,
        pool.acquire(),
    ):
        sandbox.fault("create_session", kind="error", code="PRODUCT_OUT_OF_STOCK", stored=True)
        with pool.acquire():
            assert sorted(session["product_no"] for session in sandbox.state()["sessions"]) == ["dynamic-us", "dynamic-world"]
        with pytest.raises(hopline.Invalid, match="`product` chooses the product, so leave `product_no` out"):
            agent.open_pool("other", size=3, product=cheapest, product_no="dynamic-world").__enter__()
        dear = hopline.cheapest(type="dynamic", max_unit_price=1)
        with agent.open_pool("dear", size=1, product=dear) as none, pytest.raises(hopline.Unavailable) as raised, none.acquire():
            pass
        assert (raised.value.reason, sandbox.charges()) == ("price", 2)
