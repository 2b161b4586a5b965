"""The login of the reseller API: once for everybody, again when its token is refused, and never in a loop."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hopline
import pytest
from sandbox import Sandbox
from transports import ASYNC, SYNC, async_http, sync_http

ANYWHERE = "https://api.example/api"


@pytest.mark.parametrize("name", SYNC)
def test_threads_that_begin_at_once_share_one_login(name: str, sandbox: Sandbox) -> None:
    with sync_http(name) as http, hopline.ResellerClient(**sandbox.reseller, http=http) as reseller, ThreadPoolExecutor(16) as pool:
        balances = list(pool.map(lambda _: reseller.get_current_balance().raw["balance"], range(16)))
    assert len(set(balances)) == 1 and sandbox.times("login") == 1


@pytest.mark.parametrize("name", ASYNC)
def test_tasks_that_begin_at_once_share_one_login(name: str, sandbox: Sandbox) -> None:
    async def life() -> None:
        async with async_http(name) as http, hopline.AsyncResellerClient(**sandbox.reseller, http=http) as reseller:
            await asyncio.gather(*(reseller.get_current_balance() for _ in range(40)))
            await asyncio.to_thread(reseller.to_sync().get_current_balance)

    asyncio.run(life())
    assert sandbox.times("login") == 1 and sandbox.times("get_current_balance") == 41


def test_a_token_that_is_refused_is_renewed_once_for_all_who_use_it(sandbox: Sandbox) -> None:
    with hopline.ResellerClient(**sandbox.reseller) as reseller, ThreadPoolExecutor(16) as pool:
        reseller.get_current_balance()
        first = reseller.token
        sandbox.control("tokens", {"expire": True})
        list(pool.map(lambda _: reseller.list_sub_users(), range(16)))
        assert reseller.token is not None and reseller.token != first
    assert sandbox.times("login") == 2


def test_a_write_whose_token_was_refused_is_sent_once_more_since_it_was_not_done(sandbox: Sandbox) -> None:
    with hopline.ResellerClient(**sandbox.reseller) as reseller:
        reseller.get_current_balance()
        sandbox.control("tokens", {"expire": True})
        assert reseller.create_user(username="sub-user", password="a-password").username == "sub-user"
    assert [user["username"] for user in sandbox.backend()["users"]] == ["sub-user"] and sandbox.times("login") == 2


def test_credentials_that_are_refused_are_not_sent_again(sandbox: Sandbox) -> None:
    wrong = {**sandbox.reseller, "password": "another-password"}
    with hopline.ResellerClient(**wrong) as reseller:
        for _ in range(3):
            with pytest.raises(hopline.Refused) as caught:
                reseller.get_current_balance()
            assert (caught.value.advice, caught.value.effect) == ("reauthenticate", "none") and "another-password" not in str(caught.value)
        assert reseller.token is None and sandbox.times("login") == 1
        # A caller that knows better may say so.
        given = {name: sandbox.reseller[name] for name in ("username", "password")}
        assert reseller.login(**given).token == reseller.token
        reseller.get_current_balance()
    assert sandbox.times("login") == 2


def test_a_client_starts_from_the_token_of_another(sandbox: Sandbox) -> None:
    with hopline.ResellerClient(**sandbox.reseller) as reseller:
        reseller.get_current_balance()
        token = reseller.token
        assert isinstance(token, hopline.Secret) and f"{token!r}" == "[redacted]"
    base_url = sandbox.reseller["base_url"]
    with hopline.ResellerClient(base_url=base_url, token=token) as reseller:
        reseller.get_current_balance()
        assert reseller.token == token and sandbox.times("login") == 1
        sandbox.control("tokens", {"expire": True})
        with pytest.raises(hopline.Refused) as caught:
            reseller.get_current_balance()
        assert (caught.value.status, caught.value.advice) == (401, "reauthenticate")
    assert sandbox.times("login") == 1


def test_the_environment_says_who_logs_in_where_nobody_else_does(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(hopline.Invalid, match="set the environment variable `HOPLINE_BACKEND_URL`"):
        hopline.ResellerClient(**{name: sandbox.reseller[name] for name in ("username", "password")})
    monkeypatch.setenv("HOPLINE_BACKEND_URL", sandbox.reseller["base_url"])
    monkeypatch.setenv("HOPLINE_USERNAME", sandbox.reseller["username"])
    monkeypatch.setenv("HOPLINE_PASSWORD", sandbox.reseller["password"])
    with hopline.ResellerClient() as reseller:
        reseller.get_current_balance()
    # A token that was given is never renewed as somebody else.
    with hopline.ResellerClient(token="none-of-its-own") as reseller, pytest.raises(hopline.Refused):
        reseller.get_current_balance()
    assert sandbox.times("login") == 1


def test_a_code_that_means_a_refused_token_may_be_another(sandbox: Sandbox) -> None:
    with hopline.ResellerClient(**sandbox.reseller, token_codes=["40101"]) as reseller:
        reseller.get_current_balance()
        sandbox.fault("get_current_balance", kind="error", code="40101", status=200)
        reseller.get_current_balance()
    assert sandbox.times("login") == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"username": "a"}, "`password` is required"),
        ({"password": "canary"}, "`username` is required"),
        ({"username": "", "password": "canary"}, "`username` must not be empty"),
        ({"base_url": "nowhere", "username": "a", "password": "canary"}, "the base URL must be absolute"),
        ({"username": "a", "password": "canary", "token_codes": [7]}, "`token_codes`"),
    ],
)
def test_what_can_log_nobody_in_is_refused_and_never_repeated(options: dict[str, Any], said: str) -> None:
    with pytest.raises(hopline.Invalid, match=said) as caught:
        hopline.ResellerClient(**{"base_url": ANYWHERE, **options})
    assert "canary" not in f"{caught.value} {caught.value!r} {vars(caught.value)}"


def test_each_api_has_options_of_its_own() -> None:
    for stray in ({"api_key": "a"}, {"daily_cap_usd": 1}, {"backend_ready": True}):
        with pytest.raises(TypeError):
            hopline.ResellerClient(base_url=ANYWHERE, **stray)
    with pytest.raises(TypeError):
        hopline.AgentClient(base_url=ANYWHERE, username="a")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        asyncio.run(_made())


async def _made() -> None:
    hopline.AsyncResellerClient(base_url=ANYWHERE, nonsense=1)  # type: ignore[call-arg]
