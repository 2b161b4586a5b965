"""Everyday use: numbers of other packages, notebooks, pickles, a pool that is left, a traceback."""

import asyncio
import copy
import logging
import pathlib
import pickle
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import hopline
import numpy
import pytest
from canned import SOUND, bought, until_dropped
from sandbox import Sandbox


@pytest.mark.parametrize("quantity", [numpy.int64(2), numpy.float64(0.5), numpy.float32(0.1), Fraction(1, 8), numpy.uint8(3)])
def test_numbers_of_other_packages_are_sent_digit_for_digit(quantity: Any) -> None:
    sent: list[bytes] = []

    def http(request: hopline.Request) -> hopline.Response:
        sent.append(request.body or b"")
        return bought(request)

    with hopline.AgentClient(**SOUND, http=http) as agent:
        agent.create_session(session_type="dynamic", product_no="p", quantity=quantity)
    plain = {"2": "2", "0.5": "0.5", "0.1": "0.1", "1/8": "0.125", "3": "3"}[str(quantity)]
    assert f'"quantity":{plain}'.encode() in sent[0]


@pytest.mark.parametrize("quantity", [Fraction(1, 3), numpy.float64("nan"), numpy.float32("inf")])
def test_a_number_that_no_digits_can_say_is_refused_by_its_name(quantity: Any) -> None:
    with hopline.AgentClient(**SOUND, http=bought) as agent, pytest.raises(hopline.Invalid, match="quantity"):
        agent.create_session(session_type="dynamic", product_no="p", quantity=quantity)


def test_an_amount_of_an_undocumented_answer_is_exact() -> None:
    reply = hopline.Reply(raw={"balance": 3876, "list": [{"a/b": Decimal("0.50")}, "7.25"], "no": True, "text": "x"})
    assert reply.money("/balance") == Decimal(3876) and isinstance(reply.money("/balance"), Decimal)
    assert reply.money("/list/0/a~1b") == Decimal("0.5") and reply.money("/list/1") == Decimal("7.25")
    for wrong in ("/nothing", "/no", "/text", "/list/9", "/list/a", "/list", ""):
        with pytest.raises(LookupError, match="no amount"):
            reply.money(wrong)


def test_all_that_is_public_is_listed() -> None:
    assert set(hopline.__all__) <= set(dir(hopline)) and "TYPE_CHECKING" not in dir(hopline)
    assert all(getattr(hopline, name) is not None for name in hopline.__all__)


def test_what_belongs_to_a_process_says_so_when_it_is_pickled_or_copied() -> None:
    with hopline.AgentClient(**SOUND, http=bought) as agent:
        for spoil in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="a client can't be pickled or copied"):
                spoil(agent)


def test_a_client_that_was_dropped_is_named_by_its_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hopline.AgentClient(**SOUND, http=bought).get_session(session_id="s-1")
        until_dropped(caught)
    assert "made at test_everyday.py:" in str([one.message for one in caught if one.category is ResourceWarning])


def test_who_is_in_the_way_in_the_same_process_is_named(tmp_path: pathlib.Path) -> None:
    first = hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path))
    with first, hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path)) as second:
        first.open_session(session_type="dynamic", product_no="p", intent="cell")
        with pytest.raises(hopline.Busy) as caught:
            second.open_session(session_type="dynamic", product_no="p", intent="cell")
    assert "made at test_everyday.py:" in str(caught.value.__notes__)


def test_an_opening_says_that_it_was_not_awaited_and_trio_that_it_is_not_asyncio() -> None:
    agent = hopline.AsyncAgentClient(**SOUND, http=bought)
    opening = agent.open_session(session_type="dynamic", product_no="p")
    assert "await it" in repr(opening)
    opening.close()
    reading = agent.get_balance()
    with pytest.raises(hopline.Misuse, match="run on asyncio; under trio"):
        reading.send(None)
    asyncio.run(agent.close())


def test_words_of_other_hosts_are_not_offered() -> None:
    with hopline.AgentClient(**SOUND, http=bought) as agent, pytest.raises(hopline.Invalid, match="`requests`") as caught:
        agent.open_session(session_type="dynamic", product_no="p", use_with="scrapy")  # type: ignore[arg-type]
    assert "okhttp" not in str(caught.value) and "undici" not in str(caught.value)


def test_a_traceback_shows_no_line_of_a_screen() -> None:
    with hopline.AgentClient(**SOUND, http=bought) as agent, pytest.raises(hopline.Invalid) as caught:
        agent.open_session(session_type="dynamic", product_no="p", quantity=-1)
    assert max(map(len, "".join(traceback.format_exception(caught.value)).splitlines())) < 200


POOL: dict[str, Any] = {"size": 1, "session_type": "dynamic", "product_no": "dynamic-world", "daily_cap_usd": 100}


def test_a_pool_that_is_left_with_a_lease_says_what_it_waits_for(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    with hopline.AgentClient(**sandbox.account) as agent, caplog.at_level(logging.WARNING, "hopline"):
        pool = agent.open_pool("left", **POOL)
        # That of the thread that closes it would be given back.
        with ThreadPoolExecutor(1) as other:
            lease = other.submit(pool.acquire).result()
        pool.close(grace=0.5)
        assert "1 leases of it are out" in caplog.text and not lease.valid
    pool.close()  # its client is closed, and the pool with it


def test_a_program_that_fails_waits_for_no_lease(sandbox: Sandbox) -> None:
    begun = time.monotonic()
    with hopline.AgentClient(**sandbox.account) as agent, pytest.raises(KeyError):
        with agent.open_pool("fails", **POOL) as pool:
            lease = pool.acquire()
            begun = time.monotonic()
            raise KeyError(lease.session_id)
    assert time.monotonic() - begun < 8
