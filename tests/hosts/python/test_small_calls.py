"""The cost of a small call in Python: the calls that it makes, which are the same on every machine. The calls are counted in a program of their own,
since pytest listens to events."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, collections, sys
import hopline

READ = hopline.Response(status=200, headers={"content-type": "application/json"}, body=b'{"success":true,"data":{"balance":1}}')
OPTIONS = {"base_url": "https://api.example/v1", "api_key": "key"}
calls = collections.Counter()

def count(frame, event, of):
    if event == "call":
        calls["Python", frame.f_code.co_name] += 1
    elif event == "c_call" and of is not sys.setprofile:
        calls["C", of.__qualname__] += 1

def blocking():
    with hopline.AgentClient(**OPTIONS, http=lambda request: READ) as agent:
        agent.get_balance()
        sys.setprofile(count)
        agent.get_balance()
        sys.setprofile(None)

async def http(request):
    return READ

async def in_a_task():
    async with hopline.AsyncAgentClient(**OPTIONS, http=http) as agent:
        await agent.get_balance()
        sys.setprofile(count)
        await agent.get_balance()
        sys.setprofile(None)

KIND
print(sum(number for (of, _), number in calls.items() if of == "Python"), calls.total(), dict(calls))
"""


@pytest.mark.parametrize(("kind", "of_python", "in_all"), [("blocking()", 22, 30), ("asyncio.run(in_a_task())", 25, 40)])
def test_a_small_call_makes_few_calls(kind: str, of_python: int, in_all: int) -> None:
    """The most calls of Python code, and in all with those of C."""
    told = subprocess.run([sys.executable, "-c", PROGRAM.replace("KIND", kind)], capture_output=True, text=True, timeout=60, check=True).stdout
    first, second, *_ = told.split()
    assert int(first) <= of_python and int(second) <= in_all, told
