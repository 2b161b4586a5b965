"""The folder of Node's programs: the command works over it, beside Node's own store, whose sources run here."""

import json
import os
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import hopline
import pytest
from command_line import Shell, typed
from conftest import ROOT
from hopline._cli.node_folder import NodeFolder
from sandbox import Sandbox

NAME = f"5e.i{1:032x}"
NODE = """
import { createInterface } from "node:readline";
import { FolderStore } from "./src/folder.js";
const store = new FolderStore(process.argv[2]);
const plain = (value) => value instanceof Map ? Object.fromEntries([...value].map(([name, data]) => [name, data?.toString() ?? null])) : Buffer.isBuffer(value) ? value.toString() : value;
for await (const line of createInterface({ input: process.stdin })) {
  const [call, ...given] = JSON.parse(line);
  if (call === "put") given[1] = Buffer.from(given[1]);
  const answer = (await store[call](...given)) ?? null;
  const told = answer && typeof answer === "object" ? Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, plain(value)])) : answer;
  console.log(JSON.stringify(told));
}
await store.close();
"""
PYTHON = """
import json, sys
from decimal import Decimal
import hopline
from hopline._cli.node_folder import NodeFolder
store = NodeFolder(sys.argv[1])
for line in sys.stdin:
    call, *given = json.loads(line)
    if call == "claim":
        found = store.claim(*given)
        busy = isinstance(found, hopline.OwnedElsewhere)
        answer = {"busy": found.data and found.data.decode()} if busy else {"claimed": {name: data and data.decode() for name, data in found.items()}}
    elif call == "put":
        answer = "done" if store.put(given[0], given[1].encode(), new=True, keep_for=None, release=False) else "lost"
    else:
        space, what = given
        spent = store.spend(space, what["entry"], Decimal(what["amount"]), day=None, cap=Decimal(what["cap"]))
        answer = {"over": str(spent.total)} if isinstance(spent, hopline.OverCap) else {"granted": spent}
    print(json.dumps(answer), flush=True)
store.close()
"""


class Client:
    """A process with a store, which is told its calls."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._process = subprocess.Popen([*command, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *call: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(call)}\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def does(self, *call: Any) -> Any:
        self.ask(*call)
        return self.answer()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def end(self) -> None:
        self._process.communicate(timeout=30)
        assert self._process.returncode == 0


@pytest.fixture
def node(tmp_path: Path) -> list[str]:
    """Node with the sources of its store. Nothing that they print from the table is needed for a folder."""
    program = shutil.which("node")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Node is not installed")
        pytest.skip("Node is not installed")
    package = tmp_path / "package"
    shutil.copytree(ROOT / "bindings-wasm/js/src", package / "src")
    (package / "gen").mkdir()
    (package / "gen/options.js").write_text("export const optionNames = [];\n")
    (package / "package.json").write_text('{"type": "module"}')
    (package / "store.js").write_text(NODE)
    return [program, str(package / "store.js")]


@pytest.fixture(params=["short", "x" * 120], ids=["short", "long"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, node: list[str]) -> Path:
    """A folder that Node has made. The path of a socket may be too long for the system."""
    made = tmp_path / str(request.param)
    maker = Client(node, made)
    assert maker.does("claim", [], 1) == {"here": False}
    maker.end()
    return made


def test_a_name_that_node_owns_is_free_when_its_process_has_died(folder: Path, node: list[str]) -> None:
    owner = Client(node, folder)
    assert owner.does("put", NAME, "what was bought", {"new": True}) == "done"
    store = NodeFolder(str(folder))
    assert store.claim([NAME], 1) == hopline.OwnedElsewhere(b"what was bought")
    assert [one.whose for one in store.list("5e", after=None, open=True).entries] == ["other"]
    assert not store.put(NAME, b"x", new=True, keep_for=None, release=False) and not store.delete(NAME)
    owner.kill()
    assert store.claim([NAME], 1) == {NAME: b"what was bought"}
    assert store.put(NAME, b"more", new=False, keep_for=3600, release=True)
    other = Client(node, folder)
    assert other.does("claim", [NAME], 1) == {"claimed": {NAME: "more"}}
    other.end()
    store.close()


def test_a_name_that_the_command_owns_is_free_for_node_when_it_was_killed(folder: Path, node: list[str]) -> None:
    owner, other = Client([sys.executable, "-c", PYTHON], folder), Client(node, folder)
    assert owner.does("put", NAME, "what was bought") == "done"
    assert other.does("claim", [NAME], 1) == {"busy": "what was bought", "here": False}
    owner.kill()
    assert other.does("claim", [NAME], 1) == {"claimed": {NAME: "what was bought"}}
    other.end()


def test_both_count_under_one_cap(folder: Path, node: list[str]) -> None:
    commands = [node, [sys.executable, "-c", PYTHON]] * 2
    clients = [Client(command, folder) for command in commands]
    for number in range(20):
        for at, client in enumerate(clients):
            client.ask("spend", "5e", {"entry": f"{at}-{number}", "amount": "0.1", "cap": "5"})
    answers = [client.answer() for client in clients for _ in range(20)]
    assert sum("granted" in answer for answer in answers) == 50
    for client in clients:
        client.end()
    [day] = (folder / "days").iterdir()
    assert sum(map(Decimal, json.loads(day.read_text()).values())) == 5


def test_a_doubt_in_a_folder_of_node_is_found_settled_and_bought_again(folder: Path, sandbox: Sandbox) -> None:
    shell = Shell(sandbox, folder)
    buy = ("buy", "dynamic-world", "--max-unit-price", "5", "--intent", "job-17")
    sandbox.fault("create_session", 99, kind="drop_before")
    shell.run(*buy, code=3)
    sandbox.forget_faults()
    assert [["resume", "job-17"], ["settle", "job-17"]] == list(typed(shell.run("doubts", code=3).out))
    shell.run("settle", "job-17", "--not-happened", "--early", "--yes")
    assert shell.run(*buy).out.startswith("socks5h://") and sandbox.charges() == 1
    assert shell.run(*buy).out.startswith("socks5h://") and sandbox.charges() == 1
    [record] = (folder / "open").iterdir()
    record.write_bytes(b"")
    assert "1 record can't be used" in shell.run("store", "check", code=3).out


def test_a_folder_of_another_version_is_refused(folder: Path, sandbox: Sandbox) -> None:
    (folder / "format").write_text("hopline folder of Node 3\n")
    assert "of Node 3" in Shell(sandbox, folder).run("doubts", code=1).err
