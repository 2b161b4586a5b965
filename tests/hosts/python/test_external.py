"""JSON texts that nobody here wrote, as answers. They lie beside the repository; where they are missing the test says so."""

from typing import Any

import hopline
import pytest
from conftest import ROOT
from hopline._errors import error_of
from hopline._hopline import Client

SUITE = ROOT.parent / "shared" / "external" / "json-test-suite" / "test_parsing"
OPTIONS = '{"base_url":"https://api.example/v1","api_key":"key"}'


def verdict_of_the_core(body: bytes) -> str:
    """The core's verdict on a body, without the package: `answered`, or the kind of the failure."""
    core = Client(OPTIONS, bytes(16))
    command = core.start("get_balance", "{}", '{"attempts":1}')
    todo: list[Any] = []
    while ("completed", command) not in todo:
        core.poll(0, 0, todo)
        for step in [step for step in todo if step[0] == "send"]:
            todo.remove(step)
            core.answer(step[1], 200, [("content-type", "application/json")], body, False, 0, 0)
    taken = core.take(command)
    assert taken is not None
    return "answered" if taken[0] == "answered" else str(error_of(taken[1]).kind)


def verdict_of_the_package(body: bytes) -> str:
    def http(request: hopline.Request) -> hopline.Response:
        return hopline.Response(status=200, headers={"content-type": "application/json"}, body=body)

    with hopline.AgentClient(base_url="https://api.example/v1", api_key="key", http=http, attempts=1) as agent:
        try:
            agent.get_balance()
        except hopline.HoplineError as error:
            return error.kind
    return "answered"


def test_every_json_text_is_accepted_or_refused_as_the_core_does() -> None:
    if not SUITE.exists():
        pytest.skip("there is no JSON test suite beside the repository")
    counted = {"y": 0, "n": 0, "i": 0}
    for path in sorted(SUITE.glob("*.json")):
        text = path.read_bytes()
        body = b'{"success":true,"data":' + text + b"}"
        core, ours = verdict_of_the_core(body), verdict_of_the_package(body)
        # A body that the core took may still be too much for Python's own JSON, and then says so.
        assert ours == core or (core, ours) == ("answered", "decode"), path.name
        if path.name.startswith("y"):
            assert ours == "answered", path.name
        if path.name.startswith("n"):
            assert ours == core == "protocol", path.name
        assert verdict_of_the_package(text) == verdict_of_the_core(text) == "protocol", path.name
        counted[path.name[0]] += 1
    print(counted)
    assert all(counted.values())
