"""Bad input: one clear error each, in Python's own idiom, and nothing is lost."""

import asyncio
import dataclasses
import inspect
import os
import pickle
from collections import ChainMap, deque
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import hopline
import pytest
from canned import never, until_dropped
from conftest import BUY
from sandbox import Sandbox
from wrapping import Wrapped, records

SOUND = {"base_url": "https://api.example/v1", "api_key": "key"}
ACCEPTED = b'{"success":true,"data":{"session_id":"s-1","status":"active","proxy":{"port":"many"}}}'


@pytest.fixture
def agent() -> hopline.AgentClient:
    return hopline.AgentClient(**SOUND, http=never)


def test_an_unknown_keyword_is_a_type_error(agent: hopline.AgentClient) -> None:
    with pytest.raises(TypeError, match=r"^AgentClient.create_session\(\) got an unexpected keyword argument 'sesion_type'"):
        agent.create_session(**BUY, sesion_type="static")
    with pytest.raises(TypeError, match="positional"):
        agent.get_session("s-1")  # type: ignore[misc, call-arg]
    with pytest.raises(TypeError, match="no option `atempts`; did you mean `attempts`\\?"):
        hopline.AgentClient(**SOUND, atempts=3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"product_no": 5}, "`product_no` must be a string"),
        ({"product_no": None}, "`product_no` must not be null"),
        ({"quantity": "many"}, "`quantity` must be a decimal number"),
        ({"quantity": Decimal("NaN")}, "`quantity` must be a decimal number"),
        ({"quantity": float("nan")}, "`quantity` must be a decimal number"),
        ({"quantity": float("inf")}, "`quantity` must be a decimal number"),
        ({"quantity": Decimal("-1")}, "`quantity` must be above 0"),
        ({"quantity": True}, "`quantity` must be"),
        ({"session_type": "dynamik"}, "`session_type` must be one of dynamic, static (did you mean `dynamic`?); nothing was charged"),
        ({"duration": 1.5}, "`duration` must be a whole number"),
        ({"intent": ""}, "`intent` must be 1 to 256 bytes"),
        ({"idempotency_key": "with space"}, "`idempotency_key` must be"),
        ({"attempts": 0}, "`attempts` must be at least 1"),
        ({"headers": {"x-api-key": "other"}}, "must not replace a header"),
        ({"headers": {"x y": "other"}}, "must have names made of"),
        ({"headers": {"x": "a\r\nb"}}, "without control characters"),
        ({"headers": 5}, "`headers` must be texts by the names of headers"),
        ({"timeout": 0}, "`timeout` must be at least 0.001 seconds"),
        ({"timeout": 1e9}, "`timeout` must be at most 2147483 seconds"),
        ({"window": -1.5}, "`window` must be at least 0.001 seconds"),
    ],
)
def test_a_wrong_value_is_refused_by_name_before_anything_is_sent(agent: hopline.AgentClient, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(hopline.Invalid) as caught:
        agent.create_session(**{**BUY, **wrong})
    assert said in str(caught.value) and caught.value.effect == "none" and "\n" not in str(caught.value)
    assert agent.saved() == []


@pytest.mark.parametrize("wrong", [{"product_no": object()}, {"product_no": {1, 2}}, {"intent": date.today()}, {"timeout": "soon"}, {"timeout": True}, {"timeout": float("nan")}])
def test_what_can_not_be_written_is_a_type_error(agent: hopline.AgentClient, wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="^`.*`(:| must).* (can't be sent|number of seconds)"):
        agent.create_session(**{**BUY, **wrong})


def test_what_was_seen_is_a_status_or_one_of_a_few_words(agent: hopline.AgentClient) -> None:
    with pytest.raises(hopline.Invalid, match="observe: `seen` must be an HTTP status, a response, an exception, or one of `captcha`, `timeout`, `block`, `proxy`, `target`"):
        agent.observe(session_id="s-1", seen="captch")  # type: ignore[arg-type]
    with pytest.raises(hopline.Invalid, match="client: `backoff` must be at least 0 seconds"):
        hopline.AgentClient(base_url="https://api.example/v1", backoff=-1)


@pytest.mark.parametrize("value", [Decimal("0.10"), 0.1, 1, Decimal("1E+2"), Decimal("0.1234567890123456789012345678")])
def test_money_is_sent_as_it_was_written(value: Any) -> None:
    bodies: list[bytes] = []

    def http(request: hopline.Request) -> hopline.Response:
        bodies.append(request.body or b"")
        return hopline.Response(status=202, body=b'{"success":true,"data":{"session_id":"s","status":"creating","estimated_charge_usd":0.10}}')

    session = hopline.AgentClient(**SOUND, http=http).create_session(**BUY, quantity=value)
    assert Decimal(bodies[0].split(b'"quantity":')[1].split(b",")[0].strip(b"}").decode()) == Decimal(str(value))
    assert str(session.estimated_charge_usd) == "0.10"


def test_objects_and_lists_of_any_kind_are_sent() -> None:
    bodies: list[bytes] = []

    def http(request: hopline.Request) -> hopline.Response:
        bodies.append(request.body or b"")
        return hopline.Response(status=200, body=b'{"success":true,"data":{}}')

    with hopline.AgentClient(**SOUND, http=http) as agent:
        event = MappingProxyType({"status": 403, "seen": deque(["a"]), "range": range(2), "more": ChainMap({"x": Decimal("0.10")})})
        agent.report_session_event(session_id="s-1", event=event)
    assert b'"seen":["a"]' in bodies[0].replace(b": ", b":") and b"0.10" in bodies[0] and b"[0,1]" in bodies[0].replace(b", ", b",")


def test_a_closed_client_says_so(sandbox: Sandbox) -> None:
    client = hopline.AgentClient(**sandbox.account)
    client.close()
    client.close()
    for call in (client.get_balance, client.saved, client.resume_all, lambda: client.observe(session_id="s", seen=200)):
        with pytest.raises(hopline.Misuse, match="closed"):
            call()


def test_closing_a_client_gives_up_what_is_under_way_and_keeps_its_record(sandbox: Sandbox, tmp_path: Path) -> None:
    async def life() -> BaseException | None:
        agent = hopline.AsyncAgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path))
        sandbox.fault("create_session", kind="delay", ms=5000)
        buying = asyncio.create_task(agent.create_session(**BUY, intent="job-1"))
        while not sandbox.charges():
            await asyncio.sleep(0.01)
        await agent.close()
        await asyncio.wait([buying], timeout=10)
        return buying.exception()

    failure = asyncio.run(life())
    assert isinstance(failure, hopline.Cancelled) and failure.effect == "unknown" and failure.record
    assert [path.name for path in records(tmp_path)] == [failure.record.rpartition(".")[0]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_client_that_was_forked_raises(agent: hopline.AgentClient) -> None:
    child = os.fork()
    if child == 0:
        try:
            agent.get_balance()
        except hopline.Misuse as misuse:
            os._exit(0 if "fork" in str(misuse) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_store_that_can_not_be_written_sends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with hopline.AgentClient(**SOUND, http=never, store=hopline.FolderStore(tmp_path / "file" / "below")) as agent:
        # An earlier start of the intent may have bought. Without one it is certain that nothing was.
        for intent, effect in (("job-1", "unknown"), (None, "none")):
            with pytest.raises(hopline.StoreError, match="sent nothing" if intent else "was not sent") as caught:
                agent.create_session(**BUY, intent=intent)
            assert caught.value.effect == effect and str(tmp_path / "file" / "below") in str(caught.value.__notes__)

    def full(name: str, call: Callable[[], Any], *_: object) -> Any:
        if name == "put":
            raise OSError(28, "No space left on device")
        return call()

    with hopline.AgentClient(**SOUND, http=never, store=Wrapped(tmp_path / "records", full)) as agent:
        with pytest.raises(hopline.StoreError) as caught:
            agent.create_session(**BUY, intent="job-1")
        assert "No space left" in str(caught.value.__notes__) and "repair the store" in str(caught.value)


@pytest.mark.parametrize("nonsense", [None, 5, "lost", [], hopline.OverCap(Decimal(1), 20000), {"a name": "text"}])
def test_a_store_that_answers_nonsense_has_failed(nonsense: Any, tmp_path: Path) -> None:
    def around(name: str, call: Callable[[], Any], *_: object) -> Any:
        return call() if name in ("release", "close") else nonsense

    with hopline.AgentClient(**SOUND, http=never, store=Wrapped(tmp_path, around)) as agent:
        with pytest.raises(hopline.StoreError) as caught:
            agent.create_session(**BUY, intent="job-1")
        assert "the store said: " in str(caught.value.__notes__)
        with pytest.raises(hopline.StoreError):
            agent.saved()


def test_a_folder_that_is_read_only_is_told_with_its_path(tmp_path: Path) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        # The administrator may write everywhere but in the kernel's own folders.
        folder = Path("/proc/self") if os.path.isdir("/proc/self") else None
    else:
        folder = tmp_path / "sealed"
        folder.mkdir(mode=0o500)
    if folder is not None:
        with hopline.AgentClient(**SOUND, http=never, store=hopline.FolderStore(folder)) as agent:
            with pytest.raises(hopline.StoreError, match="repair the store") as caught:
                agent.create_session(**BUY, intent="job-1")
            assert str(folder) in str(caught.value.__notes__)


@pytest.mark.parametrize(
    "nonsense", [None, 5, "text", object(), hopline.Response(status=-1), hopline.Response(status=200, body=None)]  # type: ignore[arg-type]
)
def test_a_transport_that_returns_nonsense_leaves_a_purchase_in_doubt(nonsense: Any) -> None:
    with hopline.AgentClient(**SOUND, http=lambda request: nonsense, attempts=1) as agent:
        with pytest.raises(hopline.InDoubt) as caught:
            agent.create_session(**BUY, intent="job-1")
        assert "transport" in str(caught.value.__notes__) and [saved.holds for saved in agent.saved()] == ["in_doubt"]
        assert agent.settle(caught.value.record or "", happened=False, early=True) and agent.saved() == []


def test_a_transport_may_say_that_nothing_was_sent() -> None:
    def http(request: hopline.Request) -> Any:
        raise hopline.Failed("connect", "never")

    with hopline.AgentClient(**SOUND, http=http, attempts=1) as agent, pytest.raises(hopline.Unavailable) as caught:
        agent.create_session(**BUY)
    assert caught.value.effect == "none"


@pytest.mark.parametrize("http", [5, "requests", object()])
def test_an_http_client_that_is_none_is_refused(http: Any) -> None:
    for make in (hopline.AgentClient, hopline.AsyncAgentClient):
        with pytest.raises(hopline.Misuse, match="`http` can't be a"):
            make(**SOUND, http=http)


@pytest.mark.parametrize("store", ["folder", Path("folder"), 5, hopline.FolderStore])
def test_a_store_that_is_none_is_refused(store: Any) -> None:
    for make in (hopline.AgentClient, hopline.AsyncAgentClient):
        with pytest.raises(hopline.Misuse, match=r"`store` can't be a .*hopline\.FolderStore"):
            make(**SOUND, store=store)


def test_a_store_serves_one_client_at_a_time(tmp_path: Path) -> None:
    store = hopline.FolderStore(tmp_path)
    first = hopline.AgentClient(**SOUND, store=store)
    for make in (hopline.AgentClient, hopline.AsyncAgentClient):
        with pytest.raises(hopline.Misuse, match="this store has a client already"):
            make(**SOUND, store=store)
    first.close()
    other = hopline.AgentClient(**SOUND, store=store)
    with pytest.warns(ResourceWarning, match="without being closed") as warned:
        del other
        until_dropped(warned)
    with hopline.AgentClient(**SOUND, store=store) as third:
        assert third.saved() == []


def test_a_client_that_could_not_be_made_does_not_keep_its_store(tmp_path: Path) -> None:
    store = hopline.FolderStore(tmp_path)
    with pytest.raises(hopline.Invalid):
        hopline.AgentClient(base_url="nowhere", store=store)
    hopline.AgentClient(**SOUND, store=store).close()


def test_an_answer_that_does_not_fit_its_type_is_done_and_kept() -> None:
    with hopline.AgentClient(**SOUND, http=lambda request: hopline.Response(status=202, body=ACCEPTED)) as agent:
        with pytest.raises(hopline.Decode) as caught:
            agent.create_session(**BUY)
        assert caught.value.effect == "done" and caught.value.raw["proxy"]["port"] == "many" and caught.value.session_id == "s-1"
        assert caught.value.field == "data.proxy.port" and "`data.proxy.port` is not a whole number" in str(caught.value)
        with pytest.raises(hopline.Decode) as caught:
            agent.get_session(session_id="s-1")
        assert caught.value.effect == "none"


@pytest.mark.parametrize("body", [b"\xff", b"[" * 100_000, b'{"success":true,"data":' + b"[" * 5000 + b"]" * 5000 + b"}", b"", b'{"success":true,"data":' + b"9" * 9000 + b"}"])
def test_any_bytes_are_an_answer_or_one_clear_error(body: bytes) -> None:
    with hopline.AgentClient(**SOUND, http=lambda request: hopline.Response(status=200, body=body), attempts=1) as agent:
        for call in (agent.get_balance, lambda: agent.get_session(session_id="s")):
            try:
                call()
            except hopline.HoplineError as error:
                assert error.kind in ("protocol", "decode")


def test_an_unknown_record_is_told(agent: hopline.AgentClient) -> None:
    calls: list[Callable[[str], object]] = [agent.resume, agent.forget, lambda record: agent.settle(record, happened=True)]
    for call in calls:
        with pytest.raises(hopline.Misuse, match="not the name of a record"):
            call("none")
    unknown = f"5e.r{'0' * 32}.0"
    with pytest.raises(hopline.Misuse, match="no such record"):
        agent.resume(unknown)
    assert not agent.settle(unknown, happened=True) and not agent.forget(unknown)


def test_doubts_that_are_resumed_together_stay_in_doubt_where_no_answer_comes(tmp_path: Path) -> None:
    lost = hopline.Failed("closed", "maybe")

    def http(request: hopline.Request) -> Any:
        raise lost

    with hopline.AgentClient(**SOUND, http=http, attempts=1, store=hopline.FolderStore(tmp_path)) as first:
        for n in range(3):
            with pytest.raises(hopline.InDoubt):
                first.create_session(**BUY, intent=f"job-{n}")
    with hopline.AgentClient(**SOUND, http=http, attempts=1, store=hopline.FolderStore(tmp_path)) as second:
        assert [type(one) for one in second.resume_all()] == [hopline.InDoubt] * 3
        assert all(second.settle(saved.record, happened=False, early=True) for saved in second.saved())
    assert not records(tmp_path)


def test_a_record_of_another_account_is_left_alone(sandbox: Sandbox, tmp_path: Path) -> None:
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as first:
        first.open_session(**BUY, intent="job-1")
    with hopline.AgentClient(**{**sandbox.account, "api_key": "other"}, store=hopline.FolderStore(tmp_path)) as other:
        assert [(one.holds, one.reason, one.intent) for one in other.saved()] == [("refused", "other_account", "job-1")]
        with pytest.raises(hopline.Invalid) as caught:
            other.open_session(**BUY, intent="job-1")
        assert caught.value.field == "intent" and caught.value.record == other.saved()[0].record
    same = hopline.AgentClient(**{**sandbox.account, "api_key": "other"}, store=hopline.FolderStore(tmp_path), same_account=True)
    assert [saved.intent for saved in same.saved()] == ["job-1"]


def test_a_record_that_was_cut_short_keeps_its_intent_from_buying_again_until_it_is_forgotten(sandbox: Sandbox, tmp_path: Path) -> None:
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as first:
        first.open_session(**BUY, intent="job-1")
    [path] = records(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as second:
        with pytest.raises(hopline.StoreError) as caught:
            second.open_session(**BUY, intent="job-1")
        [shown] = second.saved()
        assert (shown.holds, shown.reason, shown.record) == ("refused", "damaged", caught.value.record) and sandbox.charges() == 1
        assert second.open_session(**BUY, intent="job-2").phase == "ready"
        assert second.forget(shown.record) and not path.exists()
        assert second.open_session(**BUY, intent="job-1").phase == "ready"


def test_values_and_exceptions_survive_pickle(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        products = agent.list_products(limit=3)
        opened = agent.open_session(**BUY, credentials=True)
        with pytest.raises(hopline.Refused) as caught:
            agent.get_session(session_id="none")
    for value in (products, products.items[0], opened.session, hopline.UNSET):
        assert pickle.loads(pickle.dumps(value)) == value
    again = pickle.loads(pickle.dumps(opened))
    assert type(again) is hopline.SessionReply and again.session == opened.session and hash(again.session_id)
    error, copy = caught.value, pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy), copy.code, copy.status, copy.request_id) == (type(error), str(error), error.code, error.status, error.request_id)
    with pytest.raises(AttributeError):
        products.items[0].price = Decimal(0)  # type: ignore[misc]


def test_every_public_name_is_documented() -> None:
    for name in hopline.__all__:
        value = getattr(hopline, name)
        if inspect.isclass(value):
            assert value.__doc__, name
            for method, found in inspect.getmembers(value, inspect.isroutine):
                assert method.startswith("_") or found.__doc__ or value.__module__ == "builtins" or not hasattr(found, "__code__"), f"{name}.{method}"


def test_an_object_that_is_called_as_a_coroutine_is_for_tasks_only() -> None:
    class Sender:
        async def __call__(self, request: hopline.Request) -> hopline.Response:
            return hopline.Response(status=200, body=b'{"success":true,"data":{"balance":1}}')

    with pytest.raises(hopline.Misuse, match="`http` can't be a `Sender`"):
        hopline.AgentClient(**SOUND, http=Sender())

    async def life() -> None:
        async with hopline.AsyncAgentClient(**SOUND, http=Sender()) as agent:
            assert (await agent.get_balance()).raw == {"balance": 1}

    asyncio.run(life())


def test_a_body_is_bytes_and_no_number_of_them() -> None:
    for body in (10**18, [1], None):
        with hopline.AgentClient(**SOUND, attempts=1, http=lambda _, body=body: hopline.Response(status=200, body=body)) as agent:  # type: ignore[misc]
            with pytest.raises(hopline.Unavailable) as caught:
                agent.get_balance()
            assert "could not be read: TypeError" in str(caught.value.__notes__)


def test_what_is_replaced_is_the_same_but_for_that() -> None:
    proxy = hopline.Proxy(host="h", port=1)
    assert proxy.__replace__(port=2) == hopline.Proxy(host="h", port=2)
    with pytest.raises(TypeError, match="`Proxy` has no `prot`"):
        proxy.__replace__(prot=2)
    aborted: list[str] = []
    request = hopline.Request(method="GET", url="https://api.example/v1", headers={}, body=None, timeout=20, max_body=1)
    request.__replace__(timeout=5).on_abort(lambda: aborted.append("it"))
    request.abort()
    assert aborted == ["it"]

    def http(request: hopline.Request) -> hopline.Response:
        return hopline.Response(status=200, body=b'{"success":true,"data":{"session_id":"s-1","session_type":"static","status":"active"}}')

    with hopline.AgentClient(**SOUND, http=http) as agent:
        with agent.open_session(**BUY) as session:
            assert session.__replace__(phase="unknown").phase == "unknown" and session.session.__replace__(raw=1).raw == 1


@pytest.mark.parametrize("half", ["\ud800", "a\udfffb"])
def test_half_of_a_surrogate_pair_is_refused_by_the_name_of_its_parameter(agent: hopline.AgentClient, half: str) -> None:
    for name, given in {"product_no": {**BUY, "product_no": half}, "intent": {**BUY, "intent": half}, "headers": {**BUY, "headers": {"x": half}}}.items():
        with pytest.raises(hopline.Invalid) as caught:
            agent.create_session(**given)
        assert caught.value.field == name and caught.value.effect == "none"


def test_values_are_dataclasses_to_python_as_they_are_to_type_checkers() -> None:
    body = b'{"success":true,"data":{"session_id":"s-1","session_type":"static","status":"active","proxy":{"host":"h","password":"p"}}}'
    with hopline.AgentClient(**SOUND, http=lambda _: hopline.Response(status=200, body=body)) as agent:
        session = agent.get_session(session_id="s-1")
    assert dataclasses.is_dataclass(session) and "session_id" in [field.name for field in dataclasses.fields(session)]
    other = dataclasses.replace(session, status="expired")
    assert (other.status, other.session_id, other.raw) == ("expired", "s-1", session.raw)
    told = dataclasses.asdict(session)
    assert told["proxy"]["host"] == "h" and str(told["proxy"]["password"]) == "[redacted]"
    assert dataclasses.fields(hopline.Until)[0].name == "at"
    with pytest.raises(TypeError, match="has no `staus`"):
        dataclasses.replace(session, staus="expired")
