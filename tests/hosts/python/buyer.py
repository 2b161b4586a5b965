"""A program that buys under intents, with its records in a folder: to be killed and started again.

    buyer.py FOLDER FIRST COUNT [POINT]

The program kills itself, with no chance to do anything about it, when it comes to that point: every call of the store and every send is two.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import hopline
from conftest import BUY
from wrapping import Wrapped


class Points:
    """Counts the points of a purchase at which a process can die."""

    def __init__(self, fatal: int | None) -> None:
        self._left = fatal

    def passed(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)


def store_of(folder: str, points: Points) -> hopline.Store:
    """The folder, with a point before and after each call."""

    def around(name: str, call: Callable[[], Any], *_: object) -> Any:
        points.passed()
        answer = call()
        points.passed()
        return answer

    return Wrapped(folder, around)


def buy_one(folder: str, name: str, points: Points) -> None:
    from hopline._http import transport_for_threads

    send = transport_for_threads(None)

    def http(request: hopline.Request) -> hopline.Response:
        points.passed()
        answer = send(request)
        points.passed()
        return answer

    with hopline.AgentClient(http=http, store=store_of(folder, points)) as agent:
        agent.resume_all()
        print(agent.open_session(**BUY, intent=name).session_id, flush=True)


async def buy_many(folder: str, first: int, count: int) -> None:
    async with hopline.AsyncAgentClient(store=hopline.FolderStore(folder)) as agent:
        await agent.resume_all()

        async def one(n: int) -> Any:
            try:
                return await agent.open_session(**BUY, intent=f"job-{n}", attempts=8)
            except hopline.Busy as busy:
                return busy

        print("begun", flush=True)
        for came in await asyncio.gather(*(one(n) for n in range(first, first + count))):
            print(came.session_id or "busy", flush=True)
        # Its records are nobody else's for as long as it lives.
        sys.stdin.read()


if __name__ == "__main__":
    folder, first, count, *point = sys.argv[1:]
    if int(count) == 1:
        buy_one(folder, f"job-{first}", Points(int(point[0]) if point else None))
    else:
        asyncio.run(buy_many(folder, int(first), int(count)))
