"""The rest of the reseller API: what its lists and products are, in whatever spelling, and what its lists hold page by page."""

import asyncio
from decimal import Decimal
from ipaddress import ip_address
from typing import Any

import hopline
import pytest
from sandbox import Sandbox

SPELLINGS: list[dict[str, str]] = [
    {},
    {"list": "items", "code": "text", "message": "msg", "product_type": "word", "refusal_status": "ok"},
    {"list": "list"},
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_answer_is_read_alike_in_any_spelling(spelling: dict[str, str], sandbox: Sandbox) -> None:
    sandbox.control("spelling", spelling)
    with hopline.ResellerClient(**sandbox.reseller) as reseller:
        products = {product.product_id: product for product in reseller.query_products(language="en").items}
        shared, exclusive = products["static-shared-us"], products["static-us"]
        assert hopline.is_shared(shared) and not hopline.is_shared(exclusive) and shared.project_list
        assert isinstance(exclusive.price, Decimal) and exclusive.unit == "month" and isinstance(exclusive.proxy_type, str)
        [ranges] = reseller.list_ip_ranges(product_no="static-us").items
        assert ranges.ip_ranges and ranges.ip_ranges[0].ip_range
        read = hopline.parse_ip_range(ranges.ip_ranges[0].ip_range)
        assert read.first is not None and read.last is not None and read.first < read.last
        with pytest.raises(hopline.Refused) as caught:
            reseller.find_dynamic_order(order_no="none")
        assert (caught.value.code, caught.value.effect) == ("404", "none") and caught.value.text


def test_a_place_that_a_product_is_not_sold_in_is_refused_with_those_that_it_is(sandbox: Sandbox) -> None:
    with hopline.ResellerClient(**sandbox.reseller) as reseller:
        user = reseller.create_user(username="sub-user", password="a-password", email="a@mail.example", phone="13800000000")
        assert user.id is not None and user.email is not None and user.email.reveal() == "a@mail.example"
        terms: dict[str, Any] = {"unit_price": 0, "total_amount": 0, "ip_count": 1, "cycle_times": 1, "duration": 1, "unit": "month"}
        with pytest.raises(hopline.Refused) as caught:
            reseller.create_static_order(pool_id="static-us", user_id=user.id, country_code="DE", **terms)
    assert caught.value.code == "location_not_supported_for_product" and caught.value.details["supportedRegions"]


def test_lists_are_walked_from_any_position(sandbox: Sandbox) -> None:
    names = [f"sub-user-{n:02}" for n in range(23)]

    async def awaited() -> list[str | None]:
        async with hopline.AsyncResellerClient(**sandbox.reseller) as reseller:
            return [user.username async for user in reseller.walk_sub_users(page_size=7)]

    with hopline.ResellerClient(**sandbox.reseller) as reseller:
        for name in names:
            reseller.create_user(username=name, password="a-password")
        walk = reseller.walk_sub_users(page_size=10)
        first = next(iter(walk.pages()))
        assert isinstance(first, hopline.SubUserList) and len(first.items) == 10
        rest = [user.username for user in reseller.walk_sub_users(page_size=10, position=walk.position)]
        assert sorted([user.username or "" for user in first.items] + [name or "" for name in rest]) == names
        assert sorted(name or "" for name in asyncio.run(awaited())) == names
        capped = reseller.walk_sub_users(page_size=5, max_pages=2)
        assert len(list(capped)) == 10 and capped.end == "page_cap"
        for other in (reseller.walk_static_orders(), reseller.walk_dynamic_orders(), reseller.walk_consumption(page_size=1)):
            list(other)
            assert other.end == "short_page"
        with pytest.raises(hopline.Invalid, match="walk of that list"):
            reseller.walk_static_orders(position=walk.position)


def test_money_and_traffic_are_bought_and_watched(sandbox: Sandbox) -> None:
    with hopline.ResellerClient(**sandbox.reseller) as reseller:
        user = reseller.create_user(username="sub-user", password="a-password", balance=Decimal("40.50"))
        assert user.id is not None and user.balance == Decimal("40.50")
        order = reseller.create_dynamic_order(
            pool_id="dynamic-world", traffic_amount=Decimal("0.5"), user_id=user.id, unit_price=0, total_amount=0, remark="job-17"
        )
        number = order.raw["order_no"]
        assert reseller.find_dynamic_order(order_no=number).raw["order_no"] == number
        assert reseller.get_remaining_flow(user_id=user.id, product_no="dynamic-world").raw
        assert reseller.extract_dynamic_proxies(product_no="dynamic-world", proxy_type=104, extract_config={"method": "any"}).raw
        assert reseller.set_sub_user_status(user_id=user.id, status="disabled").raw["status"] == "disabled"
        assert reseller.edit_sub_user_account(user_id=user.id, username="another-name").raw["username"] == "another-name"
        reseller.delete_sub_user(user_id=user.id)
        [deleted] = reseller.list_sub_users(include_deleted=True).items
        assert (deleted.username, deleted.status) == ("another-name", "deleted")

        assert reseller.get_usdt_wallet().raw
        transfer = reseller.create_usdt_order(parameters={"amount": 25}).raw
        paid = hopline.Until(at="/status", is_=["paid"])
        asked = {"order_no": transfer["order_no"]}
        assert reseller.check_usdt_order(parameters=asked, until=paid, deadline=0).phase == "pending"
        sandbox.control("pay", {"order_id": transfer["order_no"]})
        assert reseller.check_usdt_order(parameters=asked, until=paid, deadline=10).phase == "ready"
        assert reseller.request("GET", "/usdt/orders").raw


def test_parameters_that_break_a_rule_are_refused_by_their_name_before_anything_is_sent(sandbox: Sandbox) -> None:
    with hopline.ResellerClient(**sandbox.reseller) as reseller:
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("password", {"username": "sub-user", "password": "short"}),
            ("phone", {"username": "sub-user", "password": "a-password", "phone": "123"}),
            ("username", {"username": "su", "password": "a-password"}),
        ]
        for field, given in wrong:
            with pytest.raises(hopline.Invalid) as caught:
                reseller.create_user(**given)
            assert caught.value.field == field
        with pytest.raises(hopline.Invalid) as caught:
            reseller.list_consumption(start_date="1.5.2025")
        assert caught.value.field == "start_date"
        with pytest.raises(hopline.Invalid) as caught:
            reseller.renew_static_order(duration=1, unit="month", cycle_times=1)
        assert caught.value.field in ("orderNo", "order_id")
    assert sandbox.times("login") == 0


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("192.0.2.0/30", "192.0.2.0", "192.0.2.3"),
        ("192.0.2.1 - 192.0.2.9", "192.0.2.1", "192.0.2.9"),
        ("2001:db8::/127", "2001:db8::", "2001:db8::1"),
        ("any", None, None),
    ],
)
def test_a_range_is_read_where_it_can_be_and_kept_as_text_where_not(text: str, first: str | None, last: str | None) -> None:
    read = hopline.parse_ip_range(text)
    assert read == hopline.IpRange(text=text, first=ip_address(first) if first else None, last=ip_address(last) if last else None)


def test_a_product_is_shared_by_its_type_or_its_projects() -> None:
    assert hopline.is_shared({"product_type": "2"}) and hopline.is_shared(hopline.ProductRanges(project_list=("shop",)))
    assert not hopline.needs_project_id({"productType": 1}) and not hopline.is_shared(hopline.StaticProduct())
    with pytest.raises(TypeError, match="must be a product"):
        hopline.is_shared("shared")  # type: ignore[arg-type]
