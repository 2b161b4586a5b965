"""`hopline`: a doubt is found, looked up, settled and bought again from the shell alone, whatever became of it."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import hopline
import pytest
from command_line import Shell, interrupt, typed, until_at_work, until_said
from hopline._cli.main import main
from sandbox import Sandbox

BUY = ("buy", "dynamic-world", "--max-unit-price", "5")
HOUR = "3600000"


@pytest.fixture
def shell(sandbox: Sandbox, tmp_path: Path) -> Shell:
    return Shell(sandbox, tmp_path)


def buy(shell: Shell, intent: str, code: int = 0) -> str:
    said = shell.run(*BUY, "--intent", intent, code=code)
    assert bool(said.out) == (code == 0)
    return said.out.strip() or said.err


def fetched(sandbox: Sandbox, url: str) -> int:
    """Fetches a page through a proxy, and returns the status."""
    seen = ["curl", "--silent", "--noproxy", "", "--proxy", url, "--output", "/dev/null", "--write-out", "%{http_code}"]
    return int(subprocess.run([*seen, sandbox.ready["target_url"]], capture_output=True, text=True, check=True, timeout=30).stdout)


@pytest.mark.parametrize("arrived", [True, False])
def test_a_doubt_is_found_looked_up_settled_and_bought_again_from_the_shell_alone(arrived: bool, shell: Shell, sandbox: Sandbox) -> None:
    # Each answer is lost; the purchase arrived, or did not.
    sandbox.fault("create_session", 99, kind="drop_after" if arrived else "drop_before")
    lost = buy(shell, "job-17", code=3)
    assert "money may have moved" in lost and ["resume", "job-17"] in list(typed(lost))
    assert sandbox.charges() == (1 if arrived else 0)

    # Found, without a word of who made it.
    shown = shell.run("doubts", code=3).out
    assert shown.startswith("1 operation is in doubt\n") and "job-17" in shown
    assert [["resume", "job-17"], ["settle", "job-17"]] == list(typed(shown))

    # Looked up: nothing is decided.
    found = shell.run("settle", "job-17", code=3)
    assert "only reads are sent" in found.err and "it stays in doubt" in found.out
    charges = [one["item"]["reference"] for one in shell.run("settle", "job-17", "--json", code=3).json["candidates"] if "reference" in one["item"]]
    assert len(charges) == (1 if arrived else 0)
    assert shell.run("doubts", "--json", code=3).json["doubts"][0]["intent"] == "job-17"

    # Settled.
    sandbox.forget_faults()
    if arrived:
        settled = shell.run("settle", "job-17", "--became", charges[0], "--yes")
        assert "never buys again" in settled.err and list(typed(settled.out)) == [["resume", "job-17"]]
        assert charges[0] in shell.run("resume", "job-17").out
        assert fetched(sandbox, shell.run("proxy", "job-17").out.strip()) == 200
        assert fetched(sandbox, buy(shell, "job-17")) == 200 and sandbox.charges() == 1
    else:
        early = shell.run("settle", "job-17", "--not-happened", "--yes", code=3)
        assert "may still arrive until" in early.err and "--early does not wait" in early.err
        settled = shell.run("settle", "job-17", "--not-happened", "--early", "--yes")
        assert "may buy again" in settled.err and settled.out.startswith("`job-17` is settled; next:\n  hopline buy … --intent job-17")
        assert sandbox.charges() == 0
    assert shell.run("doubts").out == "nothing is in doubt\n"

    # Bought again: the purchase that did not happen under its own name, the other one under a new name.
    assert fetched(sandbox, buy(shell, "job-18" if arrived else "job-17")) == 200
    assert sandbox.charges() == (2 if arrived else 1)


def test_a_doubt_that_can_be_sent_again_is_resumed_with_the_same_key(shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("create_session", 4, kind="drop_after")
    buy(shell, "job-17", code=3)
    asked = shell.run("resume", "job-17", code=2)
    assert "with the same key" in asked.err and "--yes" in asked.err
    resumed = shell.run("resume", "job-17", "--yes")
    assert " is ready: `active`\n" in resumed.out and list(typed(resumed.out)) == [["proxy", "job-17"], ["end", "job-17"]]
    assert sandbox.charges() == 1 and shell.run("doubts").out == "nothing is in doubt\n"


def test_a_purchase_that_the_service_failed_and_made_all_the_same_is_settled_as_its_session(shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("create_session", 1, kind="error", code="BACKEND_TIMEOUT", status=504, stored=True, sold=True)
    failed = buy(shell, "job-17", code=3)
    assert list(typed(failed)) == [["settle", "job-17"]]
    shown = shell.run("doubts", code=3).out
    assert "can't be sent again" in shown and list(typed(shown)) == [["settle", "job-17"]]
    code, seen = shell.at_terminal("settle", "job-17", answers=(sandbox.state()["charges"][0]["session_id"], "y"))
    assert code == 0 and "Which is it?" in seen and "Go on? [y/N]" in seen and "never buys again" in seen
    buy(shell, "job-17")
    assert sandbox.charges() == 1


@pytest.mark.parametrize(("answers", "code"), [(("",), 3), (("none",), 3), (("ses_1", "n"), 1), (("ses_1", ""), 1)])
def test_a_person_who_does_not_agree_leaves_a_doubt_as_it_is(answers: tuple[str, ...], code: int, shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("create_session", 99, kind="drop_before")
    buy(shell, "job-17", code=3)
    sandbox.forget_faults()
    ended, seen = shell.at_terminal("settle", "job-17", answers=answers)
    assert ended == code and ("may still arrive" in seen) >= (answers == ("none",))
    [doubt] = shell.run("doubts", "--json", code=3).json["doubts"]
    assert doubt["holds"] == "in_doubt" and sandbox.charges() == 0


def test_a_purchase_whose_process_was_killed_is_shown_and_the_same_command_goes_on_with_it(shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("create_session", 1, kind="delay", ms=3_600_000)
    killed = shell.begin(*BUY, "--intent", "job-17")
    until_at_work(sandbox, "create_session")
    killed.kill()
    killed.communicate()
    [doubt] = shell.run("doubts", "--json", code=3).json["doubts"]
    assert doubt["intent"] == "job-17" and doubt["whose"] == "free" and doubt["next"][0] == "hopline resume job-17"
    buy(shell, "job-17")
    assert sandbox.charges() == 1 and shell.run("doubts").code == 0


@pytest.mark.parametrize("is_accepted", [True, False])
def test_the_same_intent_finds_the_session_of_a_purchase_that_was_interrupted(is_accepted: bool, tmp_path: Path) -> None:
    slow = Sandbox("--seed", "7", "--provisioning-ms", HOUR)
    try:
        shell = Shell(slow, tmp_path)
        if not is_accepted:
            slow.fault("create_session", 1, kind="delay", ms=int(HOUR))
        command = shell.begin(*BUY, "--intent", "job-17")
        if is_accepted:
            until_said(command, "accepted: session")
        else:
            until_at_work(slow, "create_session")
        interrupt(command)
        said = shell.end(command)
        assert said.code == 130 and said.out == "" and said.err.count("hopline: interrupted") == 1
        assert [["resume", "job-17"], ["doubts"]] == list(typed(said.err))
        assert shell.run("doubts", code=0 if is_accepted else 3).out != ""
        slow.control("clock", {"advance_ms": int(HOUR)})
        url = buy(shell, "job-17")
        assert slow.charges() == 1 and fetched(slow, url) == 200
    finally:
        slow.close()


def test_two_commands_at_once_buy_one_session(tmp_path: Path) -> None:
    slow = Sandbox("--seed", "7", "--provisioning-ms", HOUR)
    try:
        shell = Shell(slow, tmp_path)
        first = shell.begin(*BUY, "--intent", "job-17")
        until_said(first, "accepted: session")
        second = shell.run(*BUY, "--intent", "job-17", code=1)
        assert "this call bought nothing" in second.err and second.out == ""
        waiting = shell.begin(*BUY, "--intent", "job-17", "--wait")
        until_said(waiting, "buying 1 GB")
        slow.control("clock", {"advance_ms": int(HOUR)})
        ended = [shell.end(command) for command in (first, waiting)]
        assert [one.code for one in ended] == [0, 0] and ended[0].out == ended[1].out and slow.charges() == 1
    finally:
        slow.close()


def test_a_reseller_s_order_in_doubt_is_settled_as_the_order_that_is_there(sandbox: Sandbox, tmp_path: Path) -> None:
    names = {"HOPLINE_BACKEND_URL": "backend_url", "HOPLINE_USERNAME": "username", "HOPLINE_PASSWORD": "password"}
    shell = Shell(sandbox, tmp_path, **{variable: sandbox.ready[name] for variable, name in names.items()})
    with hopline.ResellerClient(**sandbox.reseller, store=hopline.FolderStore(tmp_path)) as reseller:
        user = reseller.create_user(username="sub-17", password="a long password", intent="user-17")
        reseller.adjust_sub_user_balance(user_id=user.id or 0, amount=50, remark="for May", intent="money-17")
        offered = reseller.query_products(proxy_type=103, standard_country_code="US").items
        product = next(one for one in offered if one.stock and not hopline.needs_project_id(one))
        sandbox.fault("create_static_order", kind="drop_after")
        with pytest.raises(hopline.InDoubt):
            reseller.place_order(
                pool_id=product.product_id or "", user_id=user.id or 0, unit_price=0, total_amount=0, ip_count=1, duration=1, unit="month", cycle_times=1, intent="order-17"
            )
    assert list(typed(shell.run("doubts", code=3).out)) == [["settle", "order-17"]]
    [candidate] = [one for one in shell.run("settle", "order-17", "--json", code=3).json["candidates"] if one["became"]]
    shell.run("settle", "order-17", "--became", candidate["became"], "--yes")
    assert f"order {candidate['became']} is ready: `active`" in shell.run("resume", "order-17").out
    [order] = [one for one in shell.run("orders", "--json").json["orders"] if one["intent"] is not None]
    assert order["order_no"] == candidate["became"] and order["intent"] == "order-17"
    # The proxies of all these orders, with their passwords, were in the answers.
    instances = json.dumps(shell.run("orders", "--json").json)
    assert '"password"' not in instances and "instances" not in instances


def test_a_wrong_key_is_no_good_news(shell: Shell, sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.fault("create_session", 4, kind="drop_after")
    buy(shell, "job-17", code=3)
    stranger = Shell(sandbox, tmp_path, HOPLINE_API_KEY="sandbox-of-somebody-else")
    for command in ("doubts", "store check"):
        said = stranger.run(*command.split(), code=3).out
        assert "1 record can't be used, and may be a doubt" in said and "of another API key" in said
    assert "(AUTH_INVALID_KEY, HTTP 401)" in stranger.run(*BUY, "--intent", "job-18", code=1).err
    assert "did you mean `job-17`?" in shell.run("settle", "job-71", code=1).err


def test_the_intent_of_another_account_buys_nothing(shell: Shell, sandbox: Sandbox, tmp_path: Path) -> None:
    with hopline.AgentClient(base_url=sandbox.ready["agent_url"]) as anybody:
        other = anybody.register_account(name="b")
    stranger = Shell(sandbox, tmp_path, HOPLINE_API_KEY=other.api_key.reveal())
    buy(shell, "job-17")
    refused = stranger.run(*BUY, "--intent", "job-17", code=1)
    assert refused.err.count("hopline: ") == 1 and sandbox.charges() == 1
    assert "another API key" in stranger.run("store", "check", code=3).out


@pytest.mark.parametrize("word", ["n", "no", "Y", "yes"])
def test_a_yes_or_a_no_is_no_id(word: str, shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("create_session", 99, kind="drop_after")
    buy(shell, "job-17", code=3)
    sandbox.forget_faults()
    code, seen = shell.at_terminal("settle", "job-17", "--yes", answers=(word, ""))
    assert code == 3 and f"`{word}` is no id" in seen
    assert "is no id" in shell.run("settle", "job-17", "--became", word, "--yes", code=2).err
    # An id that the service does not show is asked about whatever was agreed to beforehand.
    code, seen = shell.at_terminal("settle", "job-17", "--yes", answers=("ses_1", "n"))
    assert code == 1 and "ses_1 is not among what the service shows" in seen
    session = sandbox.state()["charges"][0]["session_id"]
    assert shell.at_terminal("settle", "job-17", "--yes", answers=(session,))[0] == 0


@pytest.mark.parametrize("is_known", [True, False])
def test_what_was_settled_by_hand_wrongly_is_shown_and_settled_again(is_known: bool, shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("create_session", 99, kind="drop_after")
    buy(shell, "job-17", code=3)
    sandbox.forget_faults()
    wrong = ("--became", "ses_" + "0" * 20) if is_known else ("--happened",)
    shell.run("settle", "job-17", *wrong, "--yes")
    assert ["settle", "job-17"] in list(typed(shell.run("doubts").out))
    assert shell.run("settle", "job-17", code=3).out.startswith("`job-17` is not in doubt")
    session = sandbox.state()["charges"][0]["session_id"]
    shell.run("settle", "job-17", "--became", session, "--yes")
    assert session in shell.run("resume", "job-17").out and sandbox.charges() == 1
    assert shell.run("doubts").out == "nothing is in doubt\n"
    assert "has no doubt" in shell.run("settle", "job-17", "--became", session, "--yes", code=1).err


def test_records_that_were_not_looked_at_are_no_good_news(shell: Shell, sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.fault("create_session", 99, kind="drop_before")
    shell.run(*BUY, "--intent", "job-17", "--account", "team", code=3)
    for command in ("doubts", "store check"):
        said = shell.run(*command.split(), code=3).out
        assert "1 record was not looked at, of another `account` or of the other API: --account NAME" in said
        assert shell.run(*command.split(), "--json", code=3).json["not_looked_at"] == 1
    assert "1 record was not looked at" in shell.run("resume", "job-17", code=1).err
    assert shell.run("doubts", "--account", "team", "--json", code=3).json["not_looked_at"] == 0
    with hopline.ResellerClient(**sandbox.reseller, store=hopline.FolderStore(tmp_path)) as reseller:
        sandbox.fault("create_user", kind="drop_after")
        with pytest.raises(hopline.InDoubt):
            reseller.create_user(username="sub-17", password="a long password", intent="user-17")
    assert "2 records were not looked at" in shell.run("doubts", code=3).out


def test_what_may_not_be_settled_yet_is_not_offered(shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("create_session", 99, kind="drop_before")
    buy(shell, "job-17", code=3)
    assert not any("--not-happened" in command for command in shell.run("settle", "job-17", "--json", code=3).json["next"])


@pytest.mark.parametrize("command", ["resume", "settle"])
def test_an_interrupted_command_says_how_to_go_on(command: str, shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("create_session", 99, kind="drop_before")
    buy(shell, "job-17", code=3)
    sandbox.forget_faults()
    sandbox.fault(None, 99, kind="delay", ms=int(HOUR))
    sent = len(sandbox.requests())
    begun = shell.begin(command, "job-17", *(["--yes"] if command == "resume" else []))
    until_said(begun, "resuming" if command == "resume" else "looking")
    until = time.monotonic() + 30
    while len(sandbox.requests()) == sent and time.monotonic() < until:
        time.sleep(0.02)
    interrupt(begun)
    said = shell.end(begun)
    assert said.code == 130 and list(typed(said.err)) == [[command, "job-17"], ["doubts"]]


def test_an_interruption_after_the_purchase_names_it(shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("HOPLINE_BASE_URL", "HOPLINE_API_KEY", "HOPLINE_STORE"):
        monkeypatch.setenv(name, shell.environment[name])
    with monkeypatch.context() as patched:
        close = hopline.AgentClient.__exit__

        def interrupted(client: hopline.AgentClient, *trouble: Any) -> None:
            close(client, *trouble)
            raise KeyboardInterrupt

        patched.setattr(hopline.AgentClient, "__exit__", interrupted)
        assert main([*BUY, "--intent", "job-17"]) == 130
    said = capsys.readouterr().err
    assert "interrupted; session ses_" in said and "was bought as `job-17`" in said and ["resume", "job-17"] in list(typed(said))
