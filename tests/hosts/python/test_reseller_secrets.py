"""No secret of the reseller API shows: not in what prints, not in tracebacks, logs, events or records."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopline
import pytest
from test_secrets import is_ours, shown
from wrapping import records

# A traceback shows the lines of this file, so no line that calls holds a secret itself.
LOGIN = {"username": "canary-reseller", "password": "canary-password"}
TOKEN, HEADER, BODY = "canary-token", "canary-header", "canary-body"
USER = {"password": "canary-sub-password", "email": "canary@mail.example"}
CHANGED = {"password": "canary-new-password"}
FREE = {"parameters": {"note": BODY}}
INSTANCE = {"ip": "192.0.2.1", "username": "canary-proxy-user", "password": "canary-proxy-password", "full_url": "http://canary:canary@192.0.2.1"}
ORDER = {"orderNo": "o-1", "order_no": "o-1", "status": "active", "userId": 7, "instances": [INSTANCE], "email": "canary@mail.example"}
DATA = {"id": 7, "token": TOKEN, "orderNo": "o-1", "status": "active", "email": "canary@mail.example", "items": [ORDER], "instances": [INSTANCE]}
TERMS: dict[str, Any] = {"duration": 1, "unit": "month", "cycle_times": 1}
STATIC: dict[str, Any] = {"pool_id": "p", "user_id": 7, "unit_price": 0, "total_amount": 0, "ip_count": 1, **TERMS}


def calls(reseller: hopline.ResellerClient, headers: dict[str, hopline.Secret]) -> dict[str, Callable[[], object]]:
    return {
        "login": lambda: reseller.login(**LOGIN),
        "create_user": lambda: reseller.create_user(username="sub-user", **USER, headers=headers),
        "get_current_balance": lambda: reseller.get_current_balance(),
        "list_sub_users": lambda: reseller.list_sub_users(),
        "adjust_sub_user_balance": lambda: reseller.adjust_sub_user_balance(user_id=7, amount=1, remark="why"),
        "edit_sub_user_account": lambda: reseller.edit_sub_user_account(user_id=7, **CHANGED),
        "set_sub_user_status": lambda: reseller.set_sub_user_status(user_id=7, status="active"),
        "delete_sub_user": lambda: reseller.delete_sub_user(user_id=7),
        "query_products": lambda: reseller.query_products(),
        "list_ip_ranges": lambda: reseller.list_ip_ranges(),
        "create_dynamic_order": lambda: reseller.create_dynamic_order(pool_id="p", user_id=7),
        "list_dynamic_orders": lambda: reseller.list_dynamic_orders(),
        "get_dynamic_order": lambda: reseller.get_dynamic_order(order_id="7"),
        "find_dynamic_order": lambda: reseller.find_dynamic_order(order_no="o-1"),
        "extract_dynamic_proxies": lambda: reseller.extract_dynamic_proxies(product_no="p", proxy_type=104),
        "get_products_flow": lambda: reseller.get_products_flow(user_id=7),
        "get_remaining_flow": lambda: reseller.get_remaining_flow(user_id=7, product_no="p"),
        "create_static_order": lambda: reseller.create_static_order(**STATIC),
        "list_static_orders": lambda: reseller.list_static_orders(search="o-1"),
        "get_static_order_statistics": lambda: reseller.get_static_order_statistics(),
        "renew_static_order": lambda: reseller.renew_static_order(order_no="o-1", **TERMS),
        "cancel_static_order": lambda: reseller.cancel_static_order(order_no="o-1"),
        "get_dashboard": lambda: reseller.get_dashboard(),
        "list_consumption": lambda: reseller.list_consumption(),
        "list_agent_transactions": lambda: reseller.list_agent_transactions(),
        "get_usdt_wallet": lambda: reseller.get_usdt_wallet(),
        "create_usdt_order": lambda: reseller.create_usdt_order(**FREE),
        "check_usdt_order": lambda: reseller.check_usdt_order(parameters={"order_no": "u-1"}),
        "list_usdt_orders": lambda: reseller.list_usdt_orders(),
        "cancel_usdt_order": lambda: reseller.cancel_usdt_order(parameters={"order_no": "u-1"}),
        "place_order": lambda: reseller.place_order(**STATIC, intent="job-17"),
        "wait_order": lambda: reseller.wait_order(order_no="o-1"),
        "request": lambda: reseller.request("POST", "/x", body=FREE),
    }


def test_no_secret_of_the_reseller_api_is_printed_logged_or_recorded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    sent: list[str] = []
    told: list[object] = []
    kept: list[str] = []
    fail = [""]

    def look() -> None:
        kept.append("".join(path.read_text() for path in records(tmp_path)))

    def http(request: hopline.Request) -> Any:
        sent.append(f"{request.url} {dict(request.headers)} {request.body!r}")
        told.append(request)
        look()
        if fail[0] == "lost" and not request.url.endswith("/auth/login"):
            raise hopline.Failed("closed", "maybe")
        if fail[0] == "refused":
            refusal = {"code": 400, "message": "no"}
            return hopline.Response(status=400, body=json.dumps(refusal).encode())
        return hopline.Response(status=200, body=json.dumps({"code": 0, "message": "ok", "data": DATA}).encode())

    options: dict[str, Any] = {**LOGIN, "base_url": "https://api.example/api", "http": http, "attempts": 1}
    reseller = hopline.ResellerClient(**options, store=hopline.FolderStore(tmp_path), on_event=told.append)
    everything = calls(reseller, {"x-more": hopline.Secret(HEADER)})
    operations = {name for name in dir(hopline.ResellerClient) if not name.startswith(("_", "walk_"))}
    about_clients = {"resume", "resume_all", "settle", "forget", "saved", "events", "close", "to_async", "token", "reconcile"}
    assert operations - about_clients == set(everything), "every operation is called here"
    for name, call in everything.items():
        told.append((answer := call()))
        assert type(answer).__name__ in repr(answer), name
    login = reseller.login(**LOGIN)
    assert login.token.reveal() == TOKEN and reseller.token == login.token
    [user] = reseller.list_sub_users().items
    assert user.email is not None and user.email.reveal() == USER["email"]
    placed = reseller.wait_order(order_no="o-1")
    assert placed.order.items[0]["instances"][0]["password"] == INSTANCE["password"]
    for walk in (reseller.walk_sub_users(), reseller.walk_static_orders()):
        told += [*walk.pages(), walk, walk.position]

    fail[0] = "lost"
    for name, call in everything.items():
        if name in ("login", "place_order", "wait_order"):
            continue
        with pytest.raises(hopline.HoplineError) as caught:
            call()
        told.append(caught.value)
    look()
    fail[0] = ""
    for saved in reseller.saved():
        told.append(saved)
        if saved.holds == "in_doubt_for_good":
            try:
                told.append(reseller.reconcile(saved.record))
            except hopline.HoplineError as error:
                told.append(error)
    assert any(isinstance(one, hopline.Reconciliation) and one.candidates for one in told)
    fail[0] = "refused"
    for call in everything.values():
        try:
            told.append(call())
        except hopline.HoplineError as error:
            told.append(error)
    told += [*reseller.saved(), reseller, reseller.to_async()]
    look()

    for secret in (*LOGIN.values(), TOKEN, HEADER, BODY, *USER.values(), *CHANGED.values()):
        assert any(secret in one for one in sent), f"{secret} was never sent, so nothing is shown by its absence"
    assert any(kept), "records were kept"
    for text in (*(shown(one) for one in told), caplog.text, *kept):
        assert "canary" not in text


@pytest.mark.parametrize("wrong", [{"base_url": "nowhere"}, {"base_url": "https://api.example", "attempts": "x"}])
def test_a_client_that_is_refused_does_not_repeat_who_logs_in(wrong: dict[str, Any]) -> None:
    import traceback

    for given in (LOGIN, {"token": TOKEN}):
        with pytest.raises((hopline.Invalid, TypeError)) as caught:
            hopline.ResellerClient(**given, **wrong)
        told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        ours = [frame for frame in told.stack if is_ours(frame)]
        assert ours and "canary" not in "".join(str(frame.locals) for frame in ours) + shown(caught.value)
