"""Static orders of the reseller API: placed once, watched, in doubt, resumed, given up."""

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import hopline
import httpx
import pytest
from sandbox import Sandbox
from wrapping import records

PLACER = str(Path(__file__).with_name("placer.py"))


def funded(reseller: hopline.ResellerClient, name: str = "sub-user") -> int:
    """A sub-user that can buy something."""
    user = reseller.create_user(username=name, password="a-password")
    assert user.id is not None
    reseller.adjust_sub_user_balance(user_id=user.id, amount=50, remark="to begin with")
    return user.id


def order_for(user_id: int) -> dict[str, Any]:
    terms = {"ip_count": 1, "cycle_times": 1, "duration": 1, "unit": "month"}
    return {"pool_id": "static-us", "user_id": user_id, "unit_price": 0, "total_amount": 0, **terms}


def purchases(sandbox: Sandbox) -> list[str]:
    return [entry["order_no"] for entry in sandbox.backend()["entries"] if entry["type"] == "purchase"]


def test_an_order_lives_from_its_placing_to_its_end(sandbox: Sandbox) -> None:
    told: list[hopline.Event] = []
    with hopline.ResellerClient(**sandbox.reseller, on_event=told.append) as reseller:
        user_id = funded(reseller)
        offered = reseller.query_products(proxy_type=[103]).items
        product = next(one for one in offered if one.product_id == "static-us")
        assert isinstance(product.price, Decimal) and product.unit == "month" and not hopline.needs_project_id(product)
        assert any(hopline.needs_project_id(one) for one in offered)

        placed = reseller.place_order(**order_for(user_id), intent="order-1")
        assert (placed.phase, placed.order.status, placed.order.order_no) == ("ready", "active", placed.order_no)
        assert reseller.saved()[0].order_no == placed.order_no
        [instance] = placed.order.items[0]["instances"]
        proxy = hopline.Proxy(
            host=instance["ip"],
            port=instance["port"],
            protocol="socks5",
            username=hopline.Secret(instance["username"]),
            password=hopline.Secret(instance["password"]),
        )
        with httpx.Client(**proxy.for_httpx(), trust_env=False, timeout=10) as through:
            assert through.get(sandbox.ready["target_url"]).json()["address"] == instance["exit_ip"]

        before = instance["expires_at"]
        reseller.renew_static_order(order_no=placed.order_no, duration=1, unit="month", cycle_times=1)
        waited = reseller.wait_order(order_no=placed.order_no, deadline=10)
        assert waited.order.items[0]["instances"][0]["expires_at"] > before
        reseller.cancel_static_order(order_no=placed.order_no)
        ended = reseller.wait_order(order_no=placed.order_no, ends=["cancelled"], deadline=10)
        assert (ended.phase, ended.order.status) == ("ended", "cancelled")
        kinds = [entry["type"] for entry in reseller.walk_consumption(order_no=placed.order_no)]
        assert sorted(kinds) == ["purchase", "renewal"]
    assert [event.order_no for event in told if event.event == "ordered"] == [placed.order_no] == purchases(sandbox)
    statuses = [(event.status, event.phase) for event in told if event.event == "order_status"]
    assert ("active", "ready") in statuses and ("cancelled", "ended") in statuses


def test_the_same_intent_is_placed_once(sandbox: Sandbox, tmp_path: Path) -> None:
    with hopline.ResellerClient(**sandbox.reseller, store=hopline.FolderStore(tmp_path)) as reseller:
        user_id = funded(reseller)
        first, second = (reseller.place_order(**order_for(user_id), intent="order-1") for _ in range(2))
    with hopline.ResellerClient(**sandbox.reseller, store=hopline.FolderStore(tmp_path)) as reseller:
        third = reseller.place_order(**order_for(user_id), intent="order-1")
    assert [first.order_no, second.order_no, third.order_no] == purchases(sandbox) * 3


def test_an_order_whose_answer_was_lost_is_looked_up_and_settled(sandbox: Sandbox, tmp_path: Path) -> None:
    with hopline.ResellerClient(**sandbox.reseller, store=hopline.FolderStore(tmp_path)) as reseller:
        user_id = funded(reseller)
        sandbox.fault("create_static_order", kind="drop_after")
        with pytest.raises(hopline.InDoubt) as caught:
            reseller.place_order(**order_for(user_id), intent="order-1")
        assert (caught.value.advice, caught.value.effect, sandbox.times("create_static_order")) == ("reconcile", "unknown", 1)
        record = caught.value.record
        assert record is not None and reseller.saved()[0].holds == "in_doubt_for_good"
    # Another client, later, of the same folder.
    with hopline.ResellerClient(**sandbox.reseller, store=hopline.FolderStore(tmp_path)) as reseller:
        found = reseller.reconcile(record)
        assert (found.operation, found.complete) == ("create_static_order", True)
        [candidate] = found.candidates
        assert candidate.read == "list_static_orders" and "userId" in candidate.matched
        assert [candidate.item["order_no"]] == purchases(sandbox)
        number = candidate.item["order_no"]
        for happened, became, rule in ((True, "", "must not be empty"), (False, number, "belongs to what happened")):
            with pytest.raises(hopline.Invalid, match=f"settle: `became` {rule}") as refused:
                reseller.settle(record, happened=happened, became=became)
            assert refused.value.field == "became"
        assert reseller.settle(record, happened=True, became=number)
        [saved] = reseller.saved()
        assert (saved.holds, saved.order_no) == ("order", number) and not reseller.settle(saved.record, happened=True)
    # The program itself, started once more, goes on with what was found.
    with hopline.ResellerClient(**sandbox.reseller, store=hopline.FolderStore(tmp_path)) as reseller:
        placed = reseller.place_order(**order_for(user_id), intent="order-1")
        assert (placed.order_no, placed.phase) == (number, "ready")
    assert sandbox.times("create_static_order") == 1


def test_a_sub_user_that_was_found_is_what_its_intent_answers_with(sandbox: Sandbox) -> None:
    with hopline.ResellerClient(**sandbox.reseller) as reseller:
        sandbox.fault("create_user", kind="drop_after")
        with pytest.raises(hopline.InDoubt) as caught:
            reseller.create_user(username="bob", password="canary-bob", intent="bob")
        assert caught.value.record is not None
        [candidate] = reseller.reconcile(caught.value.record).candidates
        with pytest.raises(hopline.Invalid, match="must be the number of a sub-user"):
            reseller.settle(caught.value.record, happened=True, became="bob")
        assert reseller.settle(caught.value.record, happened=True, became=candidate.item["id"])
        bob = reseller.create_user(username="bob", password="canary-bob", intent="bob")
        assert (bob.id, bob.username) == (candidate.item["id"], None) and sandbox.times("create_user") == 1
        reseller.adjust_sub_user_balance(user_id=bob.id, amount=5, remark="for bob")
        assert sandbox.times("adjust_sub_user_balance") == 1


def test_an_order_that_never_arrived_has_no_candidate_and_may_be_placed_anew(sandbox: Sandbox) -> None:
    with hopline.ResellerClient(**sandbox.reseller) as reseller:
        user_id = funded(reseller)
        sandbox.fault("create_static_order", kind="drop_before")
        with pytest.raises(hopline.InDoubt) as caught:
            reseller.place_order(**order_for(user_id), intent="order-1")
        assert caught.value.record is not None
        assert reseller.reconcile(caught.value.record).candidates == ()
        assert reseller.settle(caught.value.record, happened=False, early=True)
        assert reseller.place_order(**order_for(user_id), intent="order-1").phase == "ready"
        with pytest.raises(hopline.Refused, match="has changed since you read it"):
            reseller.reconcile(caught.value.record)
        [placed] = reseller.saved()
        with pytest.raises(hopline.Misuse, match="takes a record in doubt"):
            reseller.reconcile(placed.record)
        with pytest.raises(hopline.Misuse, match="not the name of a record"):
            reseller.reconcile("none")
    assert len(purchases(sandbox)) == 1


def test_no_write_is_repeated_by_itself(sandbox: Sandbox) -> None:
    with hopline.ResellerClient(**sandbox.reseller, attempts=5) as reseller:
        user_id = funded(reseller)
        for fault in ({"kind": "drop_after"}, {"kind": "truncate"}, {"kind": "html", "status": 502, "after": True}):
            sandbox.fault("adjust_sub_user_balance", **fault)
            with pytest.raises(hopline.InDoubt) as caught:
                reseller.adjust_sub_user_balance(user_id=user_id, amount=1, remark=str(fault["kind"]))
            assert caught.value.record is not None
            matched = [one.matched for one in reseller.reconcile(caught.value.record).candidates]
            assert any("remark" in names or "amount" in names for names in matched), matched
    assert sandbox.times("adjust_sub_user_balance") == 4


def test_an_order_outlives_the_task_that_waits_for_it(tmp_path: Path) -> None:
    sandbox = Sandbox("--seed", "7", "--provisioning-ms", "1500", "--balance", "100000")

    async def give_up() -> str:
        async with hopline.AsyncResellerClient(**sandbox.reseller, store=hopline.FolderStore(tmp_path)) as reseller:
            user_id = await asyncio.to_thread(funded, reseller.to_sync())
            task = asyncio.create_task(reseller.place_order(**order_for(user_id), intent="order-1"))
            async for event in reseller.events():
                if event.event == "ordered":
                    break
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            assert any("the order continues" in note for note in caught.value.__notes__)
            [saved] = await reseller.saved()
            assert (saved.operation, saved.order_no) == ("create_static_order", event.order_no)
            assert saved.order_no is not None
            return saved.order_no

    async def go_on(order_no: str) -> None:
        async with hopline.AsyncResellerClient(**sandbox.reseller, store=hopline.FolderStore(tmp_path)) as reseller:
            user = sandbox.backend()["users"][0]["id"]
            placed = await reseller.place_order(**order_for(user), intent="order-1")
            assert (placed.order_no, placed.phase) == (order_no, "ready")
            [saved] = await reseller.saved()
            assert await reseller.forget(saved.record)

    order_no = asyncio.run(give_up())
    asyncio.run(go_on(order_no))
    assert purchases(sandbox) == [order_no] and not records(tmp_path)
    sandbox.close()


def test_a_client_that_is_closed_lets_go_of_the_order_and_names_it() -> None:
    sandbox = Sandbox("--seed", "7", "--provisioning-ms", "60000")
    reseller = hopline.ResellerClient(**sandbox.reseller)
    user_id, events = funded(reseller), reseller.events()
    with ThreadPoolExecutor(1) as pool:
        placing = pool.submit(reseller.place_order, **order_for(user_id))
        ordered = next(event for event in events if event.event == "ordered")
        reseller.close()
        with pytest.raises(hopline.Cancelled) as caught:
            placing.result(timeout=10)
    assert (caught.value.order_no, caught.value.advice, caught.value.effect) == (ordered.order_no, "wait_order", "done")
    with hopline.ResellerClient(**sandbox.reseller) as reseller:
        sandbox.control("order", {"order_no": ordered.order_no, "outcome": "active"})
        assert reseller.wait_order(order_no=ordered.order_no or "", deadline=10).phase == "ready"
    assert purchases(sandbox) == [ordered.order_no]
    sandbox.close()


def test_a_deadline_ends_the_wait_and_not_the_order(tmp_path: Path) -> None:
    sandbox = Sandbox("--seed", "7", "--provisioning-ms", "60000")
    with hopline.ResellerClient(**sandbox.reseller) as reseller:
        placed = reseller.place_order(**order_for(funded(reseller)), deadline=0.2)
        assert (placed.phase, placed.order.status) == ("pending", "processing")
        sandbox.control("order", {"order_no": placed.order_no, "outcome": "failed"})
        ended = reseller.wait_order(order_no=placed.order_no, ends=["failed"], deadline=5)
        assert (ended.phase, ended.order.status) == ("ended", "failed")
        assert reseller.wait_order(order_no=placed.order_no, deadline=0).phase == "unknown"
    sandbox.close()


def test_tasks_that_place_at_once_get_an_order_each(sandbox: Sandbox) -> None:
    async def life() -> list[hopline.OrderReply]:
        async with hopline.AsyncResellerClient(**sandbox.reseller) as reseller:
            user_id = await asyncio.to_thread(funded, reseller.to_sync())
            await reseller.adjust_sub_user_balance(user_id=user_id, amount=1000, remark="for many")
            each = (reseller.place_order(**order_for(user_id), intent=f"order-{n}") for n in range(12))
            twice = (reseller.place_order(**order_for(user_id), intent=f"order-{n}") for n in range(12))
            return list(await asyncio.gather(*each, *twice))

    placed = asyncio.run(life())
    assert all(one.phase == "ready" for one in placed)
    assert [one.order_no for one in placed[:12]] == [one.order_no for one in placed[12:]]
    assert sorted({one.order_no for one in placed}) == sorted(purchases(sandbox))
    assert sandbox.times("login") == 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_whoever_places_an_order_may_be_killed_at_any_point_and_started_again(sandbox: Sandbox, tmp_path: Path) -> None:
    account = {"HOPLINE_BACKEND_URL": sandbox.ready["backend_url"]}
    account |= {f"HOPLINE_{name.upper()}": sandbox.ready[name] for name in ("username", "password")}
    with hopline.ResellerClient(**sandbox.reseller) as reseller:
        user_id = funded(reseller)
        reseller.adjust_sub_user_balance(user_id=user_id, amount=1000, remark="for many")

    def place(point: int, *fatal: int) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, PLACER, str(tmp_path / str(point)), str(user_id), *map(str, fatal)]
        return subprocess.run(command, env=os.environ | account, capture_output=True, text=True, timeout=120)

    # The first four are a login and a list, before the order.
    first = point = 4
    ways: list[str] = []
    while (killed := place(point, point)).returncode != 0:
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        again = place(point)
        assert again.returncode == 0, again.stderr
        order_no, way = again.stdout.split()
        ways.append(way)
        assert purchases(sandbox)[-1] == order_no and len(purchases(sandbox)) == point - first + 1, f"point {point}"
        point += 1
    assert point - first >= 6 and {"placed", "settled", "resumed"} <= set(ways), "an order has saves, a send, and reads"
    assert len(purchases(sandbox)) == point - first + 1
