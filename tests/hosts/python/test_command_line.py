"""`hopline`: its output for people and for programs, its exit codes, and what it refuses."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import hopline
import pytest
from command_line import PROGRAM, Shell, typed
from sandbox import Sandbox

PAGE = Path(__file__).parents[3] / "core/docs/command.md"
BUY = ("buy", "dynamic-world", "--max-unit-price", "5", "--intent", "job-17")


@pytest.fixture
def shell(sandbox: Sandbox, tmp_path: Path) -> Shell:
    (tmp_path / "records").mkdir()
    return Shell(sandbox, tmp_path / "records")


@pytest.fixture
def reseller(sandbox: Sandbox, tmp_path: Path) -> Shell:
    names = {"HOPLINE_BACKEND_URL": "backend_url", "HOPLINE_USERNAME": "username", "HOPLINE_PASSWORD": "password"}
    return Shell(sandbox, tmp_path, **{variable: sandbox.ready[name] for variable, name in names.items()})


KEYS: dict[str, tuple[str, ...]] = {
    "products": ("products",),
    "quote dynamic-world --quantity 0.5": ("product_no", "quantity", "unit_price", "total", "currency", "unit"),
    "sessions": ("sessions", "in_doubt"),
    "proxy job-17": ("session_id", "status", "protocol", "host", "port", "url"),
    "doubts": ("doubts", "unusable", "settled", "not_looked_at"),
    "resume job-17": ("intent", "operation", "session_id", "order_no", "status", "phase", "next"),
    "balance": ("agent", "reseller"),
    "orders": ("orders",),
    "store init": ("store", "made"),
    "store check": ("store", "records", "in_doubt", "unusable", "not_looked_at"),
    "end job-17 --yes": ("session_id", "terminated"),
    "forget job-17 --yes": ("intent", "record", "forgotten"),
}


def test_every_command_prints_json_with_the_same_members_each_time(reseller: Shell) -> None:
    bought = reseller.run(*BUY, "--json").json
    assert tuple(bought) == ("intent", "session_id", "charged_usd", "status", "protocol", "host", "port", "url")
    assert bought["charged_usd"] == "4" and bought["url"].startswith("socks5h://")
    for command, members in KEYS.items():
        said = reseller.run(*command.split(), "--json")
        assert tuple(said.json) == members, command
    assert tuple(reseller.run("products", "--json").json["products"][0])[:4] == ("product_no", "name", "type", "sharing")
    assert reseller.run("pools", "--json").json == reseller.run("pool", "list", "--json").json == []
    assert reseller.run("quote", "dynamic-world", "--quantity", "0.5", "--json").json["total"] == "2"
    assert reseller.run("balance", "--json").json["agent"]["balance"] == "99996"


def test_the_json_of_a_doubt_and_of_what_settles_it(shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("create_session", 99, kind="drop_before")
    failed = shell.run(*BUY, "--json", code=3).json["error"]
    assert failed["kind"] == "in_doubt" and failed["effect"] == "unknown" and failed["next"] == ["hopline resume job-17"]
    known = ("intent", "record", "operation", "holds", "whose", "session_id", "order_no", "in_doubt_since", "settle_from")
    [doubt] = shell.run("doubts", "--json", code=3).json["doubts"]
    assert tuple(doubt) == (*known, "next") and doubt["record"] == failed["record"]
    looked_up = shell.run("settle", "job-17", "--json", code=3).json
    assert tuple(looked_up) == (*known, "settled", "candidates", "complete", "next") and looked_up["settled"] is False
    assert tuple(looked_up["candidates"][0]) == ("read", "became", "belongs_to", "matched", "item")
    settled = shell.run("settle", doubt["record"], "--not-happened", "--early", "--yes", "--json").json
    assert tuple(settled) == (*known, "settled", "happened", "became", "candidates", "complete", "next") and settled["settled"] is True
    stopped = shell.run("settle", "job-17", "--yes", "--json", code=1).json["error"]
    assert tuple(stopped) == ("kind", "message", "next") and stopped["kind"] == "stopped"


def test_nothing_is_bought_without_a_price_limit_or_a_cap(shell: Shell, sandbox: Sandbox) -> None:
    unlimited = shell.run("buy", "dynamic-world", "--intent", "job-17", code=2)
    assert "nothing is bought without a limit" in unlimited.err and list(typed(unlimited.err)) == [["quote", "dynamic-world"]]
    assert sandbox.requests() == []
    above = shell.run("buy", "dynamic-world", "--intent", "a", "--max-unit-price", "3.99", code=1).err.splitlines()[-2]
    assert above.startswith("hopline: buy `a`: was not sent, because one unit costs 4 USD, above `--max-unit-price`, 3.99 USD; nothing was charged")
    assert "cap" in shell.run("buy", "dynamic-world", "--intent", "a", "--daily-cap", "3.99", code=1).err
    shell.environment["HOPLINE_DAILY_CAP_USD"] = "7"
    shell.run("buy", "dynamic-world", "--intent", "b")
    # The day's second purchase passes the cap, which all commands of a store share.
    assert "cap" in shell.run("buy", "dynamic-world", "--intent", "c", code=1).err
    assert sandbox.charges() == 1
    for wrong in ("-1", "nan", "inf", "1e999999999999999999999", "four", "1_000", "1,5", "\N{ARABIC-INDIC DIGIT FIVE}"):
        assert "is not an amount" in shell.run("buy", "dynamic-world", "--intent", "d", f"--max-unit-price={wrong}", code=2).err
    for wrong in ("nan", "inf", "-1", "soon"):
        assert "is not a number of seconds" in shell.run("buy", "dynamic-world", "--intent", "d", "--max-unit-price", "9", f"--deadline={wrong}", code=2).err
    # The beginning of an option is no option.
    assert "has no option `--max`" in shell.run("buy", "dynamic-world", "--intent", "d", "--max", "9", code=2).err
    assert "--intent" in shell.run("buy", "dynamic-world", "--max-unit-price", "9", code=2).err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("ballance", "`balance`"),
        ("pool pauze shop", "`pause`"),
        ("store chek", "`check`"),
        ("buy x --intent a --max-price 4", "`--max-unit-price`"),
        ("buy x --intnet a --max-unit-price 4", "`--intent`"),
        ("buy x --intent a --max-unit-price 4 --protocol sock5", "`socks5`"),
        ("quote dynamik-world", "`dynamic-world`"),
        ("proxy job-71", "`job-17`"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_one_that_was_meant(words: str, meant: str, shell: Shell) -> None:
    shell.run(*BUY)
    command = shell.begin(*words.split())
    said = shell.end(command)
    assert said.code in (1, 2) and said.out == "" and f"did you mean {meant}" in said.err
    assert said.err.splitlines()[0].startswith("hopline: ") and all(line.startswith("  hopline ") for line in said.err.splitlines()[1:])


def test_a_failure_is_one_sentence_and_an_exit_code(shell: Shell, sandbox: Sandbox, tmp_path: Path) -> None:
    away = Shell(sandbox, tmp_path, HOPLINE_BASE_URL="http://127.0.0.1:9/v1")
    sentence = "the service could not be reached; nothing was changed; try again later\n"
    for command in (("balance",), BUY):
        *repeats, last = away.run(*command, code=1).err.splitlines(keepends=True)
        assert last == f"hopline: {command[0]}: {sentence}" and all("again in" in line for line in repeats)
    stranger = Shell(sandbox, tmp_path, HOPLINE_API_KEY="sandbox-of-somebody-else")
    assert "AUTH_INVALID_KEY" in stranger.run("balance", code=1).err
    nobody = Shell(sandbox, tmp_path, HOPLINE_API_KEY=" ")
    assert "HOPLINE_API_KEY" in nobody.run("balance", code=2).err
    lost = Shell(sandbox, tmp_path / "gone")
    assert lost.run(*BUY, code=1).err.splitlines()[1:] == ["  hopline store init"] and not (tmp_path / "gone").exists()
    # Commands that need no store do not look for one.
    assert lost.run("balance").code == 0
    assert Shell(sandbox, Path("/proc/none")).run("store", "init", code=1).err.startswith("hopline: `/proc/none` can't be made: ")
    assert lost.run("store", "init").out == f"`{tmp_path / 'gone'}` is made\n" and lost.run(*BUY).code == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("of somebody else")
    assert Shell(sandbox, tmp_path / "other").run("doubts", code=1).err.count("\n") == 1
    sent = sandbox.times("terminate_session")
    assert "neither the account nor the store has a session `ses_1`, so nothing was sent" in shell.run("end", "ses_1", "--yes", code=1).err
    assert sandbox.times("terminate_session") == sent


def test_a_session_that_is_not_usable_in_time_is_bought_all_the_same(tmp_path: Path) -> None:
    slow = Sandbox("--seed", "7", "--provisioning-ms", "3600000")
    try:
        shell = Shell(slow, tmp_path)
        late = shell.run(*BUY, "--deadline", "0.5", code=4)
        assert late.out == "" and ["resume", "job-17"] in list(typed(late.err))
        slow.control("clock", {"advance_ms": 3_600_000})
        assert "is ready: `active`" in shell.run("resume", "job-17").out and slow.charges() == 1
    finally:
        slow.close()


def test_what_to_type_has_the_options_that_were_given(shell: Shell, sandbox: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    del shell.environment["HOPLINE_STORE"]
    sandbox.fault("create_session", 99, kind="drop_before")
    failed = shell.run(*BUY, "--store", str(folder), "--account", "a", code=3)
    assert f"  hopline resume job-17 --store '{folder}' --account a\n" in failed.err
    assert f"  hopline settle job-17 --store '{folder}' --account a\n" in shell.run("doubts", "--store", str(folder), "--account", "a", code=3).out


def test_the_cheapest_product_of_a_type_is_bought(shell: Shell, sandbox: Sandbox) -> None:
    assert "of the two" in shell.run("buy", "--intent", "a", "--max-unit-price", "20", code=2).err
    assert "of the two" in shell.run(*BUY, "--cheapest", "dynamic", code=2).err
    assert list(typed(shell.run("buy", "--cheapest", "static", "--intent", "a", code=2).err)) == [["products", "--type", "static"]]
    assert sandbox.requests() == []
    cheapest = ("buy", "--cheapest", "dynamic", "--max-unit-price", "20")
    shell.run(*cheapest, "--intent", "a")
    shell.run(*cheapest, "--intent", "b", "--country", "DE")
    shell.run(*cheapest, "--intent", "b", "--country", "DE")
    assert [one["product_no"] for one in sandbox.state()["sessions"]] == ["dynamic-world", "dynamic-de"]
    sandbox.control("price", {"product_no": "dynamic-de", "price": "30"})
    assert "dynamic-de" in shell.run(*cheapest, "--intent", "c", "--country", "DE", code=1).err and sandbox.charges() == 2


def test_a_session_is_ended_and_its_intent_forgotten(shell: Shell, sandbox: Sandbox) -> None:
    shell.run(*BUY)
    assert shell.run("sessions").out.splitlines()[1].split()[0] == "job-17"
    assert "nothing is refunded" in shell.run("end", "job-17", code=2).err
    assert [one["status"] for one in sandbox.state()["sessions"]] == ["active"]
    shell.run("end", "job-17", "--yes")
    assert [one["status"] for one in sandbox.state()["sessions"]] == ["terminated"]
    assert shell.run("sessions").out == "the store keeps no session\n"
    assert "terminated" in shell.run("sessions", "--all").out
    over = shell.run(*BUY, code=1)
    assert "is over" in over.err and list(typed(over.err)) == [["forget", "job-17"]] and sandbox.charges() == 1
    shell.run("forget", "job-17", "--yes")
    shell.run(*BUY)
    assert sandbox.charges() == 2

    # With a cap the same line of a schedule buys the next one.
    shell.run("end", "job-17", "--yes")
    assert "cap" in shell.run(*BUY, "--if-ended", "buy", code=1).err and sandbox.charges() == 2
    for _ in range(2):
        shell.run(*BUY, "--if-ended", "buy", "--daily-cap", "20")
    assert sandbox.charges() == 3


def test_only_buy_and_proxy_print_a_password(shell: Shell, sandbox: Sandbox) -> None:
    url = shell.run(*BUY).out.strip()
    password = url.split(":")[2].split("@")[0]
    assert password in shell.run("proxy", "job-17", "--curl").out
    for command in ("sessions", "sessions --read", "doubts", "resume job-17", "store check", "balance", "settle job-17"):
        for form in ([], ["--json"]):
            said = shell.end(shell.begin(*command.split(), *form))
            assert password not in said.out + said.err, command


def test_a_name_moves_no_cursor_and_is_no_markup(shell: Shell, sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        body = {"success": True, "data": agent.list_products(limit=1).raw, "meta": {"request_id": "r", "timestamp": "2026-11-27T00:00:00Z"}}
    body["data"]["items"][0]["country"] = "a\x1b[2J\x07 [red]b"
    body["data"]["next_cursor"] = None
    sandbox.fault("list_products", 3, kind="answer", status=200, headers={"content-type": "application/json"}, body=json.dumps(body, default=str))
    assert r"a\x1b[2J\x07 [red]b" in shell.run("products").out
    code, seen = shell.at_terminal("products")
    assert code == 0 and r"a\x1b[2J\x07 [red]b" in seen and "\x1b[2J" not in seen and "\x07" not in seen

    sandbox.forget_faults()
    sandbox.fault("create_session", 99, kind="drop_before")
    shell.environment |= {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    shell.run("buy", "dynamic-world", "--max-unit-price", "5", "--intent", "[red]é", code=3)
    assert r"[red]\xe9" in shell.run("doubts", code=3).out
    assert shell.run("doubts", "--json", code=3).json["doubts"][0]["intent"] == "[red]é"


@pytest.fixture
def without_rich(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder for PYTHONPATH in which `rich` can't be imported."""
    folder = tmp_path_factory.mktemp("without") / "rich"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise ImportError('not installed')")
    return str(folder.parent)


STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.mark.parametrize("has_rich", [True, False])
def test_a_terminal_of_80_columns_is_wide_enough(has_rich: bool, shell: Shell, sandbox: Sandbox, without_rich: str) -> None:
    if not has_rich:
        shell.environment["PYTHONPATH"] = without_rich
    code, seen = shell.at_terminal(*BUY)
    assert code == 0 and STYLE.sub("", seen).strip().splitlines()[-1].startswith("socks5h://")
    sandbox.fault("create_session", 99, kind="drop_before")
    shell.run("buy", "dynamic-world", "--max-unit-price", "5", "--intent", "job-18", code=3)
    for command in ("products", "quote dynamic-world", "sessions", "doubts", "balance", "store check", "pools"):
        code, seen = shell.at_terminal(*command.split())
        lines = [line for line in STYLE.sub("", seen).splitlines() if "records" not in line]
        assert lines and max(map(len, lines)) <= 80, seen
        assert ("\x1b[" in seen) >= (has_rich and command in ("products", "sessions", "doubts")) and (has_rich or "\x1b" not in seen)
        # Output for a program is the same with `rich` and without, and has no colour.
        assert "\x1b" not in shell.run(*command.split(), code=code).out


def test_the_output_is_the_same_without_rich(shell: Shell, without_rich: str) -> None:
    shell.run(*BUY)
    plain = Shell.__new__(Shell)
    plain.__dict__.update(shell.__dict__, environment={**shell.environment, "PYTHONPATH": without_rich})
    for command in ("products", "sessions", "balance", "doubts"):
        assert shell.run(*command.split()) == plain.run(*command.split())


@pytest.mark.parametrize("line", ["hopline ba|balance", "hopline pool p|pause", "hopline buy --max|--max-unit-price", "hopline completion b|bash", "hopline settle job-17 --not|--not-happened"])
def test_bash_completes_commands_and_options(line: str, shell: Shell) -> None:
    typed_so_far, wanted = line.split("|")
    words = typed_so_far.split()
    script = shell.run("completion", "bash").out + f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _hopline; echo \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-u", "-c", script], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.split() == [wanted] and done.stderr == ""


def test_other_shells_have_completion_too(shell: Shell) -> None:
    assert shell.run("completion", "zsh").out.startswith("autoload -U +X bashcompinit && bashcompinit\n")
    assert "complete -c hopline -n '__fish_use_subcommand' -a doubts" in shell.run("completion", "fish").out.splitlines()


def test_a_reader_that_goes_away_is_no_error(shell: Shell) -> None:
    done = subprocess.run(["bash", "-c", f"{shlex.quote(PROGRAM)} completion fish | head -1"], env=shell.environment, capture_output=True, text=True, timeout=30)
    assert done.stdout.count("\n") == 1 and done.stderr == ""


def test_the_package_imports_nothing_of_the_command() -> None:
    program = "import sys, hopline; print(*(name for name in sys.modules if name.startswith(('hopline._cli', 'argparse', 'rich', 'difflib'))))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


def test_what_the_page_says_to_type_works(shell: Shell, sandbox: Sandbox) -> None:
    block = PAGE.read_text().split("```sh\n")[1].split("```")[0]
    lines = [line.split(" # ")[0].strip().replace("https://example.com", sandbox.ready["target_url"]) for line in block.splitlines()]
    path = f"{Path(PROGRAM).parent}:{os.environ['PATH']}"
    environment = {**shell.environment, "PATH": path, "NO_PROXY": "", "no_proxy": ""}
    assert len(lines) == 6 and lines[0] == "export HOPLINE_STORE=hopline-records"
    for line in lines[1:]:
        done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, timeout=60)
        # No person is there to agree to the end of the session.
        assert done.returncode == (2 if line == "hopline end prices" else 0), (line, done)
        if line.startswith("curl"):
            assert json.loads(done.stdout)["address"].startswith("127."), done
    assert sandbox.charges() == 1


def test_the_help_says_what_the_exit_codes_mean() -> None:
    shown = subprocess.run([PROGRAM, "--help"], env={**os.environ, "COLUMNS": "80"}, capture_output=True, text=True, check=True).stdout
    page = PAGE.read_text()
    for code in ("0", "1", "2", "3", "4", "130"):
        assert re.search(rf"^  {code} +\w", shown, re.MULTILINE) and f"| {code} |" in page


ENDS = ("{hopline} >&-", "{hopline} >/dev/full", "{hopline} 1</dev/null")


def in_bash(shell: Shell, line: str, *arguments: str) -> tuple[int, str]:
    """Runs a line of bash, and returns the exit code of the command in it, and what it said."""
    line = line.format(hopline=shlex.join([PROGRAM, *arguments]))
    done = subprocess.run(["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"], env=shell.environment, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr and done.stdout == "", done
    return done.returncode, done.stderr


@pytest.mark.parametrize("line", ENDS)
def test_nothing_is_bought_where_its_proxy_can_t_be_printed(line: str, shell: Shell, sandbox: Sandbox) -> None:
    code, said = in_bash(shell, line, *BUY)
    assert code == 2 and said.count("\n") == 1 and said.startswith("hopline: nothing was done, since standard output "), said
    assert sandbox.requests() == []
    # A message that can't be printed ends no command.
    assert in_bash(shell, "{hopline} 2>/dev/full >/dev/null", *BUY)[0] == 0 and sandbox.charges() == 1


@pytest.mark.parametrize("command", ["buy", "resume", "end", "settle"])
def test_a_result_that_can_t_be_printed_after_an_effect_is_said_with_intent_and_session(command: str, shell: Shell, sandbox: Sandbox) -> None:
    if command != "buy":
        shell.run(*BUY)
    session = sandbox.state()["sessions"][0]["session_id"] if command != "buy" else "ses_"
    if command == "settle":
        sandbox.fault("create_session", 99, kind="drop_before")
        shell.run("buy", "dynamic-world", "--max-unit-price", "5", "--intent", "job-18", code=3)
        words: tuple[str, ...] = ("settle", "job-18", "--became", session := "ses_" + "0" * 20, "--yes")
    else:
        words = {"buy": BUY, "resume": ("resume", "job-17"), "end": ("end", "job-17", "--yes")}[command]
    # The reader goes once the command has begun.
    sandbox.fault("list_products", 1, kind="delay", ms=300) if command == "buy" else None
    ours, theirs = os.pipe()
    begun = subprocess.Popen([PROGRAM, *words], env=shell.environment, stdout=theirs, stderr=subprocess.PIPE, text=True)
    os.close(theirs)
    assert begun.stderr is not None
    first = begun.stderr.readline()
    os.close(ours)
    said = first + begun.stderr.read()
    last = said.splitlines()[-1]
    assert begun.wait(60) == 4 and "Traceback" not in said, said
    assert last.endswith("but its result can't be printed: Broken pipe") and session in last and "`job-1" in last, said


def test_the_step_says_the_total(shell: Shell) -> None:
    assert "for no more than 5 USD each, 10.0 USD in all" in shell.run(*BUY, "--quantity", "2.0").err


def test_a_living_session_is_not_forgotten_by_yes_alone(shell: Shell, sandbox: Sandbox, tmp_path: Path) -> None:
    shell.run(*BUY)
    kept = shell.run("forget", "job-17", "--yes", code=2)
    assert list(typed(kept.err)) == [["end", "job-17"], ["resume", "job-17"]]
    with hopline.AgentClient(base_url=sandbox.ready["agent_url"]) as anybody:
        other = anybody.register_account(name="b").api_key.reveal()
    stranger = Shell(sandbox, tmp_path / "records", HOPLINE_API_KEY=other)
    refused = stranger.run("forget", "job-17", "--yes", "--living", code=1)
    assert "was not forgotten" in refused.out and "job-17" in shell.run("sessions").out
    assert "is forgotten" in shell.run("forget", "job-17", "--yes", "--living").out


@pytest.mark.parametrize("module", ["hopline._told", "hopline._session", "hopline._cli.main", "argparse"])
def test_an_interrupt_while_the_command_is_loaded_is_one_line(module: str, shell: Shell, tmp_path: Path) -> None:
    finder = f"""import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
"""
    (tmp_path / "sitecustomize.py").write_text(finder)
    shell.environment["PYTHONPATH"] = str(tmp_path)
    assert shell.run("balance", code=130).err == "hopline: interrupted; nothing was done\n"


def test_a_mistyped_session_is_named_with_the_one_that_was_meant_and_nothing_is_sent(shell: Shell, sandbox: Sandbox) -> None:
    shell.run(*BUY)
    [session] = [one["session_id"] for one in sandbox.state()["sessions"]]
    for typo, meant in (("job-18", "job-17"), (session[:-1], session)):
        assert f"so nothing was sent to end it; did you mean `{meant}`?" in shell.run("end", typo, "--yes", code=1).err
    assert sandbox.times("terminate_session") == 0
    # The account knows a session that the store does not.
    shell.environment["HOPLINE_STORE"] = ""
    assert "the account has no session `job-17`" in shell.run("end", "job-17", "--yes", code=1).err
    shell.run("end", session, "--yes")
    assert sandbox.times("terminate_session") == 1
