"""A folder that several clients and processes share: one owner at a time, and nobody who only looks is in the way."""

import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopline
import pytest
from hopline import _hopline
from conftest import BUY
from memory_store import Memory, MemoryStore
from wrapping import Wrapped, records

SOUND: dict[str, Any] = {"base_url": "https://api.example/v1", "api_key": "key"}
LOOKER = """
import sys, hopline
agent = hopline.AgentClient(base_url="https://api.example/v1", api_key="key", store=hopline.FolderStore(sys.argv[1]))
print("looking", flush=True)
while True:
    agent.saved()
"""
HOLDER = """
import sys, hopline
def http(request):
    return hopline.Response(status=202, body=b'{"success":true,"data":{"session_id":"s-1","status":"active"}}')
agent = hopline.AgentClient(base_url="https://api.example/v1", api_key="key", http=http, store=hopline.FolderStore(sys.argv[1]))
agent.open_session(session_type="dynamic", product_no="dynamic-world", intent="job-1")
print("holding", flush=True)
sys.stdin.read()
"""

CLAIMER = """
import sys
from hopline import _hopline
print(_hopline.Folder(sys.argv[1]).claim([sys.argv[2]], 1)[0])
"""


def lost(request: hopline.Request) -> Any:
    raise hopline.Failed("closed", "maybe")


def bought(request: hopline.Request) -> hopline.Response:
    return hopline.Response(status=202, body=b'{"success":true,"data":{"session_id":"s-1","status":"active"}}')


def client(store: hopline.Store, http: Any = lost, **options: Any) -> hopline.AgentClient:
    return hopline.AgentClient(**{**SOUND, **options}, http=http, attempts=1, store=store)


@pytest.fixture(params=["memory", "folder"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], hopline.Store]:
    """Makes a store for one more client."""
    memory = Memory()
    return (lambda: MemoryStore(memory)) if request.param == "memory" else lambda: hopline.FolderStore(tmp_path)


def doubt(store: hopline.Store, intent: str | None = "job-1") -> str:
    """The record of a purchase in doubt, of a client that has ended."""
    with client(store) as agent, pytest.raises(hopline.InDoubt) as caught:
        agent.create_session(**BUY, intent=intent)
    assert caught.value.record is not None
    return caught.value.record


def test_an_intent_in_doubt_is_found_while_others_look_at_the_folder(tmp_path: Path) -> None:
    keys: list[str] = []

    def http(request: hopline.Request) -> Any:
        if request.method == "POST":
            keys.append(request.headers["idempotency-key"])
        raise hopline.Failed("closed", "maybe")

    lookers = [subprocess.Popen([sys.executable, "-c", LOOKER, str(tmp_path)], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for looker in lookers:
            assert looker.stdout is not None and looker.stdout.readline()
        for n in range(60):
            for _ in range(2):
                with client(hopline.FolderStore(tmp_path), http) as agent, pytest.raises(hopline.InDoubt):
                    agent.create_session(**BUY, intent=f"job-{n}")
            with client(hopline.FolderStore(tmp_path), http) as agent:
                [saved] = agent.saved()
                assert (saved.intent, saved.holds, saved.whose) == (f"job-{n}", "in_doubt", "free"), "it was resumed, not bought anew"
                assert agent.settle(saved.record, happened=False, early=True)
    finally:
        for looker in lookers:
            looker.kill()
            looker.communicate()
    assert len(set(keys)) == 60 and not records(tmp_path)


def test_what_a_living_process_holds_is_seen_and_free_once_it_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline()
    with client(hopline.FolderStore(tmp_path), bought) as agent:
        [saved] = agent.saved()
        assert (saved.holds, saved.whose) == ("session", "other") and agent.resume_all() == []
        for call in (
            lambda: agent.open_session(**BUY, intent="job-1"),
            lambda: agent.resume(saved.record),
            lambda: agent.settle(saved.record, happened=False, early=True),
            lambda: agent.forget(saved.record),
        ):
            with pytest.raises(hopline.Busy):
                call()
        process.kill()
        process.communicate()
        assert [one.whose for one in agent.saved()] == ["free"]
        assert agent.open_session(**BUY, intent="job-1").session_id == "s-1"
        assert [one.whose for one in agent.saved()] == ["mine"]


def test_two_clients_do_things_about_one_record_one_after_the_other(stores: Callable[[], hopline.Store]) -> None:
    record, numbers = doubt(stores()), itertools.count(1)

    def sold(request: hopline.Request) -> hopline.Response:
        return hopline.Response(status=202, body=bought(request).body.replace(b"s-1", f"s-{next(numbers)}".encode()))

    with client(stores()) as first, client(stores(), sold) as second:
        with pytest.raises(hopline.InDoubt):
            first.resume(record)
        with pytest.raises(hopline.Refused, match="has changed since you read it"):
            second.settle(record, happened=False, early=True)
        [saved] = second.saved()
        with pytest.raises(hopline.Refused, match="after an hour, or now with `early`") as caught:
            second.settle(saved.record, happened=False)
        assert saved.settle_from is not None and caught.value.retry_at is not None and caught.value.retry_at > saved.in_doubt_since
        assert not second.forget(saved.record), "what is in doubt is not forgotten"
        assert second.settle(saved.record, happened=False, early=True) and not first.settle(saved.record, happened=True)
        assert first.saved() == [] and second.create_session(**BUY, intent="job-1").session_id == "s-1"
        with pytest.raises(hopline.Busy):
            second.open_session(**BUY, intent="job-2")
            first.open_session(**BUY, intent="job-2", deadline=0)


def test_who_may_wait_for_an_intent_gets_it_once_it_is_let_go(tmp_path: Path) -> None:
    with client(hopline.FolderStore(tmp_path), bought) as first, client(hopline.FolderStore(tmp_path), bought) as second:
        held = first.open_session(**BUY, intent="job-1")
        with pytest.raises(hopline.Busy):
            second.open_session(**BUY, intent="job-1", wait_for_intent=True, deadline=0.3)
        assert first.release_session(session_id=held.session_id) and not first.release_session(session_id=held.session_id)
        assert second.open_session(**BUY, intent="job-1", wait_for_intent=True).session_id == held.session_id


def test_more_names_than_a_page_are_all_told(stores: Callable[[], hopline.Store]) -> None:
    with client(stores(), bought) as agent:
        space = doubt(stores(), "job-0").partition(".")[0]
        other = stores()
        for n in range(600):
            assert other.put(f"{space}.r{n:032x}", b"damaged", new=True, keep_for=None, release=True)
        other.close()
        saved = agent.saved()
        assert len(saved) == len({one.record for one in saved}) == 601
        assert {one.holds for one in saved} == {"in_doubt", "refused"} and {one.reason for one in saved} == {None, "damaged"}
        walk = agent.walk_saved()
        assert [next(walk).record for _ in range(3)] == [one.record for one in saved[:3]]


def test_a_purchase_asks_the_store_about_its_own_name_only(tmp_path: Path) -> None:
    for n in range(30):
        doubt(hopline.FolderStore(tmp_path), f"job-{n}")
    asked: list[tuple[Any, ...]] = []

    def around(name: str, call: Any, *arguments: Any) -> Any:
        asked.append((name, arguments))
        return call()

    with client(Wrapped(tmp_path, around), bought) as agent:
        agent.create_session(**BUY, intent="one more")
    assert [name for name, _ in asked] == ["claim", "put", "put", "release", "close"]
    assert len({str(arguments[0]).strip("[]'") for name, arguments in asked[:3]}) == 1


def test_other_accounts_records_are_told_and_left_alone(tmp_path: Path) -> None:
    record = doubt(hopline.FolderStore(tmp_path))
    with client(hopline.FolderStore(tmp_path), api_key="another") as stranger:
        assert stranger.resume_all() == [] and [(one.record, one.holds, one.reason) for one in stranger.saved()] == [(record, "refused", "other_account")]
        with pytest.raises(hopline.Invalid, match="same_account"):
            stranger.create_session(**BUY, intent="job-1")
        with client(hopline.FolderStore(tmp_path)) as owner, pytest.raises(hopline.InDoubt):
            owner.create_session(**BUY, intent="job-1")
    with client(hopline.FolderStore(tmp_path), api_key="another", same_account=True) as same:
        assert [(one.holds, one.intent) for one in same.saved()] == [("in_doubt", "job-1")]


@pytest.mark.skipif(os.name != "posix", reason="there are no such modes")
def test_a_record_is_readable_by_its_user_alone_whatever_the_umask(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        doubt(hopline.FolderStore(tmp_path / "store"))
    finally:
        os.umask(umask)
    modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in [tmp_path / "store", *(tmp_path / "store").rglob("*")]}
    assert modes == {True: 0o700, False: 0o600}


def test_a_folder_of_node_is_refused_and_left_alone(tmp_path: Path) -> None:
    says = "hopline folder of Node 2"
    tmp_path.joinpath("format").write_text(f"{says}\n")
    tmp_path.joinpath("open").mkdir()
    with client(hopline.FolderStore(tmp_path), bought) as agent:
        calls = ((agent.saved, "none"), (agent.resume_all, "none"), (lambda: agent.create_session(**BUY, intent="job-1"), "unknown"))
        for call, effect in calls:
            with pytest.raises(hopline.StoreError) as caught:
                call()
            assert caught.value.effect == effect and f"has the format `{says}`, not `hopline folder 2`" in str(caught.value.__notes__)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["format", "open"]


def test_a_second_copy_of_the_native_library_opens_a_folder_only_when_the_first_has_closed_it(tmp_path: Path) -> None:
    # Another file is another library to the system, as with two class loaders or two languages in one process.
    spec = importlib.util.spec_from_file_location("_hopline", shutil.copy(_hopline.__file__, tmp_path))
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    assert copy.Folder is not _hopline.Folder
    name, folder = "5e.i" + "0" * 32, tmp_path / "store"
    first = _hopline.Folder(folder)
    assert first.claim([name], 1) == ("claimed", [(name, None)])
    for _ in range(2):
        with pytest.raises(OSError, match="another copy of this library has the folder open in this process"):
            copy.Folder(folder)
    # To try has taken no lock away.
    assert subprocess.run([sys.executable, "-c", CLAIMER, folder, name], capture_output=True, text=True, check=True).stdout == "busy\n"
    first.close()
    second = copy.Folder(folder)
    assert second.claim([name], 1) == ("claimed", [(name, None)])
    with pytest.raises(OSError, match="another copy"):
        _hopline.Folder(folder)
    second.close()
