"""`hopline mcp`: an AI agent's tools, through the official client of the Model Context Protocol and a real process."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
from command_line import PROGRAM, Shell, interrupt, until_at_work, until_said
from conftest import ROOT
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from sandbox import Sandbox

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the sandbox is for Unix")
PAGE = (ROOT / "core/docs/mcp.md").read_text()
BUY = {"intent": "job-17", "product": "dynamic-world", "quantity": "0.5"}
READS = {"list_products", "quote", "list_sessions", "proxy_url", "balance", "doubts", "look_up"}


class Said(NamedTuple):
    """The answer of a tool."""

    failed: bool
    text: str
    found: dict[str, Any]


class Agent:
    """The program of an AI agent, with the server as its child."""

    def __init__(self, client: Client, secrets: list[str]) -> None:
        self.client, self.secrets = client, secrets

    async def ask(self, tool: str, **words: Any) -> Said:
        """Calls a tool."""
        answer = await self.client.call_tool(tool, words, read_timeout_seconds=120)
        text = "".join(getattr(part, "text", "") for part in answer.content)
        assert tool == "proxy_url" or not any(secret in text for secret in self.secrets), text
        return Said(bool(answer.is_error), text, answer.structured_content or {})

    async def do(self, tool: str, **words: Any) -> dict[str, Any]:
        """Calls a tool that does what it is asked for."""
        said = await self.ask(tool, **words)
        assert not said.failed, said
        return said.found

    async def fail(self, tool: str, effect: str, **words: Any) -> Said:
        """Calls a tool that fails with this effect, which it says in words, too."""
        said = await self.ask(tool, **words)
        assert said.failed and said.found["effect"] == effect and f"\neffect: {effect}, " in said.text, said
        assert said.text.startswith(said.found["message"]) and all(f"\nnext: {step}" in said.text for step in said.found["next"]), said
        return said


Story = Callable[[Agent], Awaitable[None]]


@pytest.fixture
def shell(sandbox: Sandbox, tmp_path: Path) -> Shell:
    (tmp_path / "records").mkdir()
    return Shell(sandbox, tmp_path / "records", HOPLINE_DAILY_CAP_USD="100")


@asynccontextmanager
async def agent(shell: Shell, sandbox: Sandbox, log: Path, *options: str) -> AsyncIterator[Agent]:
    server = StdioServerParameters(command=PROGRAM, args=["mcp", *options], env=shell.environment)
    secrets = [sandbox.ready["api_key"], sandbox.ready["password"]]
    with log.open("a") as errors:
        async with Client(stdio_client(server, errors)) as client:
            yield Agent(client, secrets)
    assert "Traceback" not in log.read_text() and not any(secret in log.read_text() for secret in secrets)


@pytest.fixture
def tells(shell: Shell, sandbox: Sandbox, tmp_path: Path) -> Callable[..., None]:
    """Runs a story of an agent."""

    def tell(story: Story, *options: str) -> None:
        async def run() -> None:
            async with agent(shell, sandbox, tmp_path / "log", *options) as one:
                await story(one)

        asyncio.run(run())

    return tell


def test_an_agent_buys_uses_and_ends_a_session_and_the_same_intent_buys_nothing_twice(tells: Callable[..., None], sandbox: Sandbox, tmp_path: Path) -> None:
    async def story(agent: Agent) -> None:
        known = (await agent.client.list_tools()).tools
        assert {tool.name for tool in known if tool.annotations and tool.annotations.read_only_hint} == READS
        assert {tool.name for tool in known} - READS == {"buy_session", "rotate_session", "end_session"}
        for tool in known:
            assert tool.description and f"`{tool.name}`" in PAGE
        assert "never buys twice" in (agent.client.instructions or "")

        offered = await agent.do("list_products", type="dynamic", limit=1)
        [product] = offered["products"]
        assert product["price"] == "4" and offered["left_out"] > 0
        # A number is as good as the text that the schema names.
        price = await agent.do("quote", product=product["product_no"], quantity=0.5)
        assert price["total"] == "2" and price["daily_cap_usd"] == "100" and price["intent"].startswith("mcp-")
        assert price["intent"] != (await agent.do("quote", product=product["product_no"]))["intent"]

        words = {"intent": price["intent"], "product": product["product_no"], "quantity": "0.5", "max_unit_price": price["unit_price"]}
        bought = await agent.do("buy_session", **words)
        assert bought["charged_usd"] == "2" and bought["intent"] == price["intent"] and bought["status"] == "active" and "url" not in bought
        assert await agent.do("buy_session", **words) == bought and sandbox.charges() == 1
        other = await agent.fail("buy_session", "none", **{**words, "quantity": "1"})
        assert "another `quantity`" in other.text and "arguments of its first call" in other.text and sandbox.charges() == 1

        [session] = (await agent.do("list_sessions"))["sessions"]
        assert session["session_id"] == bought["session_id"] and session["whose"] == "free"
        url = (await agent.do("proxy_url", name=price["intent"]))["url"]
        password = url.rpartition("@")[0].rpartition(":")[2]
        assert url.startswith("http://") and len(password) > 8
        agent.secrets.append(password)

        def exit_now() -> str:
            with requests.Session() as http:
                http.trust_env = False
                address: str = http.get(sandbox.ready["target_url"], proxies={"http": url}, timeout=60).json()["address"]
                return address

        first = exit_now()
        assert (await agent.do("rotate_session", name=bought["session_id"], reason="captcha"))["session_id"] == bought["session_id"]
        url = (await agent.do("proxy_url", name=bought["session_id"]))["url"]
        assert exit_now() != first
        await agent.do("list_sessions", read=True)
        assert (await agent.do("balance"))["agent"]["balance"] == "99998"

        assert (await agent.do("end_session", name=price["intent"]))["terminated"] is True
        over = await agent.fail("buy_session", "none", **words)
        assert "is over" in over.text and over.found["next"] == ["call quote for a new intent, which is another purchase"]
        gone = await agent.fail("proxy_url", "none", name=price["intent"])
        assert "has no proxy to use" in gone.text and sandbox.charges() == 1
        for tool, words, meant in (
            ("quote", {"product": "dynamic-wold"}, "did you mean `dynamic-world`?"),
            ("quote", {"product": "dynamic-world", "quantity": "1_0"}, "`1_0` is not an amount"),
            ("rotate_session", {"name": bought["session_id"][:-1]}, "so nothing was sent to rotate it; did you mean"),
        ):
            assert meant in (await agent.fail(tool, "none", **words)).text
        assert sandbox.times("rotate_session") == 1

        # The price of a static product says nothing of what a duration costs.
        month = {"intent": "office", "product": "static-us", "duration": 1, "max_unit_price": 10}
        assert "`expected_charge_usd` is required" in (await agent.fail("buy_session", "none", **month)).text
        assert (await agent.do("buy_session", **month, expected_charge_usd=10))["charged_usd"] == "10"

    tells(story)
    assert "purchases have a daily cap of 100 USD" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("arrived", [True, False])
def test_a_lost_answer_is_a_doubt_with_what_to_do_and_nothing_settles_it_but_the_same_purchase_or_a_person(
    arrived: bool, tells: Callable[..., None], sandbox: Sandbox, shell: Shell
) -> None:
    async def story(agent: Agent) -> None:
        sandbox.fault("create_session", 99, kind="drop_after" if arrived else "drop_before")
        lost = await agent.fail("buy_session", "unknown", **BUY)
        assert "money may have moved" in lost.text and lost.found["kind"] == "in_doubt" and lost.found["intent"] == "job-17"
        assert "call buy_session again with the intent `job-17`" in lost.found["next"][0] and "call look_up with the name `job-17`" in lost.found["next"][1]
        [doubt] = (await agent.do("doubts"))["doubts"]
        assert doubt["intent"] == "job-17" and doubt["next"] == lost.found["next"]
        assert (await agent.do("list_sessions"))["in_doubt"] == 1
        assert "is in doubt" in (await agent.fail("proxy_url", "none", name="job-17")).text

        shown = await agent.do("look_up", name="job-17")
        charges = [one["item"]["reference"] for one in shown["candidates"] if "reference" in one["item"]]
        assert shown["settled"] is False and len(charges) == (1 if arrived else 0)
        assert any(step.startswith("a person types: hopline settle job-17 --became") for step in shown["next"])
        assert [one["intent"] for one in (await agent.do("doubts"))["doubts"]] == ["job-17"]

        sandbox.forget_faults()
        bought = await agent.do("buy_session", **BUY)
        assert bought["charged_usd"] == "2" and charges in ([bought["session_id"]], [])
        assert (await agent.do("doubts"))["doubts"] == [] and sandbox.charges() == 1

    tells(story)
    # The command of a shell sees what the agent has bought.
    assert "job-17" in shell.run("sessions").out


def test_nothing_is_bought_beyond_the_cap_or_without_one(tells: Callable[..., None], sandbox: Sandbox, shell: Shell) -> None:
    async def capped(agent: Agent) -> None:
        await agent.do("buy_session", **BUY)
        over = await agent.fail("buy_session", "none", **{**BUY, "intent": "job-18"})
        assert "2 USD of the daily cap of 3 USD are already used" in over.text and over.found["advice"] == "raise_budget"
        assert over.found["retry_at"] is not None and sandbox.charges() == 1
        dear = await agent.fail("buy_session", "none", **{**BUY, "intent": "job-19"}, max_unit_price=3.5)
        assert "3.5" in dear.text and sandbox.charges() == 1
        # What was bought stays usable, and its intent still finds it.
        assert (await agent.do("buy_session", **BUY))["charged_usd"] == "2"

    async def uncapped(agent: Agent) -> None:
        said = await agent.fail("buy_session", "none", **{**BUY, "intent": "job-18"})
        assert "nothing is bought without a daily cap" in said.text
        assert (await agent.do("quote", product="dynamic-world"))["daily_cap_usd"] is None
        assert len((await agent.do("list_sessions"))["sessions"]) == 1

    tells(capped, "--daily-cap", "3")
    del shell.environment["HOPLINE_DAILY_CAP_USD"]
    tells(uncapped)
    assert sandbox.charges() == 1


def test_two_calls_at_once_and_a_server_that_is_killed_leave_one_purchase_each(tells: Callable[..., None], sandbox: Sandbox, shell: Shell) -> None:
    async def twice(agent: Agent) -> None:
        said = await asyncio.gather(*(agent.ask("buy_session", **BUY) for _ in range(4)))
        assert any(not one.failed for one in said)
        # The others have the same purchase, or hear that it is under way.
        assert all(one.found["intent"] == "job-17" and (not one.failed or one.found["effect"] == "none") for one in said), said

    tells(twice)
    assert sandbox.charges() == 1

    sandbox.fault("create_session", 1, kind="delay", ms=3_600_000)
    server = subprocess.Popen([PROGRAM, "mcp"], env=shell.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdin is not None
    until_said(server, "over standard input and output")
    meta = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    call = {"name": "buy_session", "arguments": {**BUY, "intent": "job-18"}}
    for message in ({"id": 1, "method": "initialize", "params": meta}, {"method": "notifications/initialized"}, {"id": 2, "method": "tools/call", "params": call}):
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()
    until_at_work(sandbox, "create_session", 2)
    server.kill()
    server.communicate(timeout=60)

    async def again(agent: Agent) -> None:
        assert [one["intent"] for one in (await agent.do("doubts"))["doubts"]] == ["job-18"]
        sandbox.forget_faults()
        assert (await agent.do("buy_session", **{**BUY, "intent": "job-18"}))["intent"] == "job-18"

    tells(again)
    assert sandbox.charges() == 2


def test_a_session_that_is_not_usable_yet_is_bought_and_the_same_call_waits_on(tmp_path: Path) -> None:
    slow = Sandbox("--seed", "7", "--provisioning-ms", "3000-3000", "--balance", "1000")
    (tmp_path / "records").mkdir()
    shell = Shell(slow, tmp_path / "records", HOPLINE_DAILY_CAP_USD="100")

    async def story() -> None:
        async with agent(shell, slow, tmp_path / "log") as one:
            early = await one.fail("buy_session", "done", **BUY, wait=1)
            assert "was bought and is not usable yet" in early.text and "call buy_session again with the intent `job-17`" in early.found["next"][0]
            assert (await one.do("buy_session", **BUY, wait=300))["status"] == "active"

    try:
        asyncio.run(story())
        assert slow.charges() == 1
    finally:
        slow.close()


def test_the_configuration_of_the_page_starts_the_server(sandbox: Sandbox, shell: Shell, tmp_path: Path) -> None:
    given = json.loads(PAGE.split("```json\n")[1].split("```")[0])["mcpServers"]["hopline"]
    assert given["command"] == "hopline" and set(given["env"]) == {"HOPLINE_BASE_URL", "HOPLINE_API_KEY", "HOPLINE_STORE", "HOPLINE_DAILY_CAP_USD"}
    shell.environment["HOPLINE_DAILY_CAP_USD"] = given["env"]["HOPLINE_DAILY_CAP_USD"]

    async def story() -> None:
        async with agent(shell, sandbox, tmp_path / "log", *given["args"][1:]) as one:
            assert (await one.do("buy_session", **BUY))["charged_usd"] == "2"

    assert given["args"][0] == "mcp"
    asyncio.run(story())


def test_what_is_missing_is_said_at_the_start_and_ctrl_c_ends_the_server(shell: Shell, tmp_path: Path) -> None:
    server = shell.begin("mcp")
    assert server.stderr is not None
    # Its input has ended already, so it ends by itself.
    assert shell.end(server).code == 0
    waiting = subprocess.Popen([PROGRAM, "mcp"], env=shell.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until_said(waiting, "over standard input and output")
    interrupt(waiting)
    assert shell.end(waiting).code == 130
    assert "HOPLINE_STORE is needed" in shell.run("mcp", "--store", "", code=2).err
    assert "hopline store init" in shell.run("mcp", "--store", str(tmp_path / "none"), code=1).err
    without = tmp_path / "without"
    without.mkdir()
    (without / "sitecustomize.py").write_text("import importlib.util as util\nfind = util.find_spec\nutil.find_spec = lambda name, *rest: None if name == 'mcp' else find(name, *rest)")
    shell.environment["PYTHONPATH"] = str(without)
    assert shell.run("mcp", code=2).err == 'hopline: `hopline mcp` needs the package mcp 2: pip install "hopline[mcp]"\n'
