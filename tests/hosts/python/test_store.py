"""A folder that several processes share: what one takes up, no other has, and nobody who only looks is in the way."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import hopline
import pytest
from conftest import BUY

SOUND = {"base_url": "https://api.example/v1", "api_key": "key"}
LOOKER = """
import sys, hopline
agent = hopline.AgentClient(base_url="https://api.example/v1", api_key="key", store=hopline.FolderStore(sys.argv[1]))
print("looking", flush=True)
while True:
    agent.saved()
"""


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
            with hopline.AgentClient(**SOUND, http=http, attempts=1, store=hopline.FolderStore(tmp_path)) as first:
                with pytest.raises(hopline.InDoubt):
                    first.create_session(**BUY, intent=f"job-{n}")
            with hopline.AgentClient(**SOUND, http=http, attempts=1, store=hopline.FolderStore(tmp_path)) as second:
                with pytest.raises(hopline.InDoubt):
                    second.create_session(**BUY, intent=f"job-{n}")
                saved = [one for one in second.saved() if one.intent == f"job-{n}"]
                assert [one.holds for one in saved] == ["in_doubt"], "it was taken up, not bought anew"
                assert second.settle(saved[0].record, happened=False)
    finally:
        for looker in lookers:
            looker.kill()
            looker.communicate()
    assert len(set(keys)) == 60 and not list(tmp_path.glob("*.json"))


def test_a_record_that_a_living_process_has_is_neither_listed_nor_taken_up(tmp_path: Path) -> None:
    holder = """
import sys, hopline
def http(request):
    raise hopline.Failed("closed", "maybe")
agent = hopline.AgentClient(base_url="https://api.example/v1", api_key="key", http=http, attempts=1, store=hopline.FolderStore(sys.argv[1]))
try:
    agent.create_session(session_type="dynamic", product_no="p", intent="job-1")
except hopline.InDoubt as error:
    print(error.record, flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen([sys.executable, "-c", holder, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    record = process.stdout.readline().strip()
    with hopline.AgentClient(**SOUND, store=hopline.FolderStore(tmp_path)) as agent:
        assert agent.saved() == [] and agent.resume_all() == [] and not agent.settle(record, happened=False)
        with pytest.raises(hopline.Busy):
            agent.create_session(**BUY, intent="job-1")
        process.kill()
        process.communicate()
        assert [saved.record for saved in agent.saved()] == [record]
        assert agent.settle(record, happened=False) and agent.saved() == []


@pytest.mark.parametrize("how", ["settle", "forget"])
def test_an_intent_that_was_taken_up_by_its_record_is_free_for_others_once_nothing_is_held_under_it(how: str, tmp_path: Path) -> None:
    def lost(request: hopline.Request) -> Any:
        raise hopline.Failed("closed", "maybe")

    def bought(request: hopline.Request) -> Any:
        return hopline.Response(status=202, body=b'{"success":true,"data":{"session_id":"s-1","status":"active"}}')

    store, http = hopline.FolderStore(tmp_path), bought if how == "forget" else lost
    with hopline.AgentClient(**SOUND, http=http, attempts=1, store=store) as first, suppress(hopline.InDoubt):
        first.create_session(**BUY, intent="job")
    with hopline.AgentClient(**SOUND, http=lost, store=store) as second, hopline.AgentClient(**SOUND, http=bought, store=store) as third:
        [saved] = second.saved()
        assert saved.intent == "job"
        assert second.forget(saved.record) if how == "forget" else second.settle(saved.record, happened=False)
        assert second.saved() == []
        assert third.create_session(**BUY, intent="job").session_id == "s-1", "though the second client lives"
        with pytest.raises(hopline.Busy):
            second.create_session(**BUY, intent="job")


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_record_that_was_refused_is_not_forgotten_while_a_living_client_has_it(kind: str, tmp_path: Path) -> None:
    def lost(request: hopline.Request) -> Any:
        raise hopline.Failed("closed", "maybe")

    store = hopline.MemoryStore() if kind == "memory" else hopline.FolderStore(tmp_path)
    with hopline.AgentClient(**SOUND, http=lost, attempts=1, store=store) as first:
        with pytest.raises(hopline.InDoubt) as doubt:
            first.create_session(**BUY)
    record = doubt.value.record
    assert record is not None
    with hopline.AgentClient(**{**SOUND, "api_key": "another"}, http=lost, store=store) as stranger:
        assert stranger.resume_all() == [] and [one.holds for one in stranger.saved()] == ["refused"]
        with hopline.AgentClient(**SOUND, http=lost, attempts=1, store=store) as owner:
            with pytest.raises(hopline.InDoubt):
                owner.resume(record)
            assert not stranger.forget(record)
            assert [one.holds for one in owner.saved()] == ["in_doubt"]
        assert [one.holds for one in stranger.saved()] == ["refused"]
        assert stranger.forget(record) and stranger.saved() == []


def test_an_intent_whose_record_was_refused_is_not_kept_from_its_owner(tmp_path: Path) -> None:
    def lost(request: hopline.Request) -> Any:
        raise hopline.Failed("closed", "maybe")

    store = hopline.FolderStore(tmp_path)
    with hopline.AgentClient(**SOUND, http=lost, attempts=1, store=store) as first, suppress(hopline.InDoubt):
        first.create_session(**BUY, intent="job")
    with hopline.AgentClient(**{**SOUND, "api_key": "another"}, http=lost, store=store) as stranger:
        assert stranger.resume_all() == []
        with hopline.AgentClient(**SOUND, http=lost, attempts=1, store=store) as owner, pytest.raises(hopline.InDoubt):
            owner.create_session(**BUY, intent="job")


@pytest.mark.parametrize("many", [300])
def test_an_intent_is_found_by_its_name_and_no_record_is_read_twice(many: int, tmp_path: Path) -> None:
    def lost(request: hopline.Request) -> Any:
        raise hopline.Failed("closed", "maybe")

    with hopline.AgentClient(**SOUND, http=lost, attempts=1, store=hopline.FolderStore(tmp_path)) as first:
        for n in range(many):
            with suppress(hopline.InDoubt):
                first.create_session(**BUY, intent=f"job-{n}")
    read: list[str] = []

    class Counting(hopline.FolderStore):
        def open(self) -> hopline.Shelf:
            shelf = super().open()
            whole = shelf.read

            def counted(record: str) -> bytes | None:
                read.append(record)
                return whole(record)

            setattr(shelf, "read", counted)
            return shelf

    with hopline.AgentClient(**SOUND, http=lost, attempts=1, store=Counting(tmp_path)) as second:
        for n in (0, many - 1, many):
            with suppress(hopline.InDoubt):
                second.create_session(**BUY, intent=f"job-{n}")
        # Each once to learn its intent, and those of the two intents once more to take them up.
        assert len(read) == many + 2
        assert {saved.intent for saved in second.saved() if saved.holds == "in_doubt"} >= {"job-0", f"job-{many}"}


def test_own_intents_are_not_listed_to_start_another(tmp_path: Path) -> None:
    def bought(request: hopline.Request) -> Any:
        return hopline.Response(status=202, body=b'{"success":true,"data":{"session_id":"s-1","status":"active"}}')

    class Core:
        def __init__(self, core: Any) -> None:
            self._core = core

        def saved_list(self) -> str:
            raise AssertionError("all that is held was listed")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._core, name)

    with hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path)) as agent:
        setattr(agent._engine, "_core", Core(agent._engine._core))
        for n in range(3):
            with agent.open_session(**BUY, intent=f"job-{n}"):
                pass


@pytest.mark.skipif(os.name != "posix", reason="there are no such modes")
def test_a_record_is_readable_by_its_user_alone_whatever_the_umask(tmp_path: Path) -> None:
    def http(request: hopline.Request) -> Any:
        raise hopline.Failed("closed", "maybe")

    umask = os.umask(0)
    try:
        with hopline.AgentClient(**SOUND, http=http, attempts=1, store=hopline.FolderStore(tmp_path)) as agent:
            with pytest.raises(hopline.InDoubt):
                agent.create_session(**BUY)
    finally:
        os.umask(umask)
    modes = {path.suffix or path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {".json": 0o600, ".locks": 0o600}
