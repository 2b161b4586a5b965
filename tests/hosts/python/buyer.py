"""A program that buys under intents, with its records in a folder: to be killed and started again.

    buyer.py FOLDER FIRST COUNT [POINT]

It kills itself, with no chance to do anything about it, when it comes to that point: every save and every send is two.
"""

import asyncio
import os
import signal
import sys
from typing import Any

import hopline
from conftest import BUY


class Points:
    """Counts the points of a purchase at which a process can die."""

    def __init__(self, fatal: int | None) -> None:
        self._left = fatal

    def passed(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Store(hopline.FolderStore):
    """The folder, with a point before and after each save."""

    def __init__(self, path: str, points: Points) -> None:
        super().__init__(path)
        self._points = points

    def open(self) -> hopline.Shelf:
        shelf, points = super().open(), self._points
        keep = shelf.keep

        def kept(record: str, data: bytes | None) -> None:
            points.passed()
            keep(record, data)
            points.passed()

        setattr(shelf, "keep", kept)
        return shelf


def buy_one(folder: str, name: str, points: Points) -> None:
    from hopline._http import choose

    send = choose(None)

    def http(request: hopline.Request) -> hopline.Response:
        points.passed()
        answer = send(request)
        points.passed()
        return answer

    with hopline.AgentClient(http=http, store=Store(folder, points)) as agent:
        agent.resume_all()
        print(agent.open_session(**BUY, intent=name).session_id, flush=True)


async def buy_many(folder: str, first: int, count: int) -> None:
    async with hopline.AsyncAgentClient(store=hopline.FolderStore(folder)) as agent:
        # Another process may have taken up what this one left, and then goes on with it.
        await agent.resume_all()

        async def one(n: int) -> Any:
            try:
                return await agent.open_session(**BUY, intent=f"job-{n}", attempts=8)
            except hopline.Busy as busy:
                return busy

        print("begun", flush=True)
        for came in await asyncio.gather(*(one(n) for n in range(first, first + count))):
            print(came.session_id or "busy", flush=True)
        # What others left is theirs to resume as long as they live, and anybody's after that.
        sys.stdin.read()


if __name__ == "__main__":
    folder, first, count, *point = sys.argv[1:]
    if int(count) == 1:
        buy_one(folder, f"job-{first}", Points(int(point[0]) if point else None))
    else:
        asyncio.run(buy_many(folder, int(first), int(count)))
