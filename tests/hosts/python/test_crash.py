"""Real processes that are killed in the middle of a purchase: one charge, whatever the moment."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import hopline
import pytest
from conftest import BUY
from sandbox import Sandbox
from wrapping import records

BUYER = str(Path(__file__).with_name("buyer.py"))


def start(sandbox: Sandbox, folder: Path, *arguments: object) -> "subprocess.Popen[str]":
    account = {"HOPLINE_BASE_URL": sandbox.ready["agent_url"], "HOPLINE_API_KEY": sandbox.ready["api_key"]}
    command = [sys.executable, BUYER, str(folder), *map(str, arguments)]
    return subprocess.Popen(command, env=os.environ | account, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_buyer_that_is_killed_at_any_point_buys_once_when_it_is_started_again(sandbox: Sandbox, tmp_path: Path) -> None:
    point, ended = 0, 0
    while True:
        killed, _ = (process := start(sandbox, tmp_path / str(point), point, 1, point)).communicate(timeout=30)
        if process.returncode == 0:
            break
        assert process.returncode == -9, f"point {point}"
        bought, _ = (again := start(sandbox, tmp_path / str(point), point, 1)).communicate(timeout=30)
        assert again.returncode == 0, f"point {point}"
        ended += 1
        assert len(set((killed + bought).split())) == 1, f"point {point}"
        assert sandbox.charges() == ended, f"point {point}"
        point += 1
    assert point >= 8, "a purchase has a save, a send, more saves and a read"
    assert sandbox.charges() == ended + 1 == len(sandbox.state()["sessions"])


def test_a_purchase_without_an_intent_is_found_by_whoever_resumes_all(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.fault("create_session", times=3, kind="drop_after")
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path), attempts=1) as agent:
        with pytest.raises(hopline.InDoubt) as caught:
            agent.open_session(**BUY)
        assert [saved.holds for saved in agent.saved()] == ["in_doubt"]
    assert caught.value.record is not None and records(tmp_path)
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent:
        assert [saved.record for saved in agent.saved()] == [caught.value.record], "it is listed before it is taken up"
        [session] = agent.resume_all()
        assert isinstance(session, hopline.SessionReply) and session.phase == "ready"
        with pytest.raises(hopline.Refused, match=session.session_id):
            agent.forget(agent.saved()[0].record)
        assert agent.release_session(session_id=session.session_id)
        for _ in range(1000):  # a session is put once more when it is let go of, which changes its record
            if agent.saved()[0].whose != "mine":
                break
        assert agent.forget(agent.saved()[0].record)
    assert sandbox.charges() == 1 and not records(tmp_path)


def test_a_purchase_in_doubt_can_be_looked_up_before_it_is_resumed(sandbox: Sandbox, tmp_path: Path) -> None:
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path), attempts=1) as agent:
        sandbox.fault("create_session", kind="drop_after")
        with pytest.raises(hopline.InDoubt) as caught:
            agent.create_session(**BUY)
    assert caught.value.record is not None
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent:
        found = agent.reconcile(caught.value.record)
        assert found.operation == "create_session" and "list_transactions" in {one.read for one in found.candidates}
        assert sandbox.times("create_session") == 1, "nothing but reads is sent"
        assert isinstance(agent.resume(caught.value.record), hopline.Reply | hopline.SessionReply)
    assert sandbox.charges() == 1


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system has no signals to threads")
def test_an_interrupt_in_the_middle_of_a_purchase_leaves_it_in_doubt(sandbox: Sandbox, tmp_path: Path) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    def signal_once_charged() -> None:
        while not sandbox.charges():
            time.sleep(0.01)
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent:
            sandbox.fault("create_session", kind="delay", ms=5000)
            threading.Thread(target=signal_once_charged, daemon=True).start()
            with pytest.raises(KeyboardInterrupt):
                agent.create_session(**BUY, intent="job-1")
            assert [(saved.holds, saved.intent) for saved in agent.saved()] == [("in_doubt", "job-1")]
            assert agent.create_session(**BUY, intent="job-1").session_id
    finally:
        signal.signal(signal.SIGALRM, before)
    assert sandbox.charges() == 1


def test_a_folder_with_files_of_other_people_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("mine")
    with hopline.AgentClient(base_url="https://api.example/v1", store=hopline.FolderStore(tmp_path)) as agent:
        for call in (agent.saved, lambda: agent.create_session(**BUY, intent="job-1")):
            with pytest.raises(hopline.StoreError, match="repair the store") as caught:
                call()
            assert "is not a store" in str(caught.value.__notes__)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.json"]


def test_a_record_that_is_no_name_leads_nowhere(tmp_path: Path) -> None:
    with hopline.AgentClient(base_url="https://api.example/v1", store=hopline.FolderStore(tmp_path)) as agent:
        with pytest.raises(hopline.Misuse, match="not the name of a record"):
            agent.resume("../notes")


def test_four_processes_share_a_folder_and_each_is_killed_and_started_again(tmp_path: Path) -> None:
    each = 50
    sandbox = Sandbox("--provisioning-ms", "100-600", "--session-limit", "1000", "--rate-limit", "1000000", "--balance", "100000")
    try:
        sandbox.fault("create_session", times=10, kind="drop_after")
        processes = [start(sandbox, tmp_path, n * each, each) for n in range(4)]
        for n, process in enumerate(processes):
            assert process.stdout is not None and process.stdout.readline() == "begun\n"
            time.sleep(0.3)
            process.kill()
            process.communicate()
            processes[n] = start(sandbox, tmp_path, n * each, each)
            sandbox.fault(None, times=5, kind="drop_after")
        came: list[str] = []
        for process in processes:
            assert process.stdout is not None
            came += [process.stdout.readline().strip() for _ in range(each + 1)]
        for process in processes:
            process.communicate("")
            assert process.returncode == 0
        state = sandbox.state()
        assert len(state["charges"]) == len(state["sessions"]) == 4 * each
        assert {session["status"] for session in state["sessions"]} == {"active"}
        assert set(came) - {"begun", "busy"} <= {session["session_id"] for session in state["sessions"]}
        with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent:
            saved = agent.saved()
            assert len({one.intent for one in saved}) == len(saved) == 4 * each
            assert {one.holds for one in saved} == {"session"}
    finally:
        sandbox.close()
