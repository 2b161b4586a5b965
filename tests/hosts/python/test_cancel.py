"""A task that is cancelled in each phase of a purchase, and a client that goes on with it later."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopline
import pytest
from conftest import BUY
from hopline._http._choose import transport_for_tasks
from sandbox import Sandbox
from wrapping import Wrapped

# Where it is given up, and how many charges there are by then.
PHASES = {
    "before it begins": 0,
    "while its name is claimed": 0,
    "while it is saved": 0,
    "when it is saved": 0,
    "as the request goes out": 0,
    "when the service has done it": 1,
    "while the answer is saved": 1,
    "as it is polled": 1,
    "when it was polled": 1,
    "as its credentials are read": 1,
}


class GivingUp:
    """The folder, and a purchase in it that is given up in one phase."""

    def __init__(self, path: Path, phase: str) -> None:
        self.store = Wrapped(path, self.around)
        self.task: asyncio.Task[Any] | None = None
        self._phase = phase
        self._passed: set[str] = set()
        self._loop = asyncio.get_running_loop()
        self._send = transport_for_tasks(None)

    def at(self, phase: str) -> None:
        """Gives up if this is the phase, once."""
        if phase == self._phase and phase not in self._passed and self.task is not None:
            self._loop.call_soon_threadsafe(self.task.cancel)
        self._passed.add(phase)

    def around(self, name: str, call: Callable[[], Any], *_: object) -> Any:
        if name == "claim":
            self.at("while its name is claimed")
        if name != "put":
            return call()
        self.at("while the answer is saved" if "when the service has done it" in self._passed else "while it is saved")
        answer = call()
        self.at("when it is saved")
        return answer

    async def http(self, request: hopline.Request) -> hopline.Response:
        buys = request.method == "POST"
        self.at("as the request goes out" if buys else "as its credentials are read" if "credentials" in request.url else "as it is polled")
        # A call that is given up here was never sent; a request that is sent arrives, whatever is given up later.
        await asyncio.sleep(0.01)
        answer = await asyncio.shield(asyncio.ensure_future(self._send(request)))
        self.at("when the service has done it" if buys else "when it was polled")
        await asyncio.sleep(0.01)
        return answer


@pytest.mark.parametrize("how", ["the intent is started again", "all is resumed"])
@pytest.mark.parametrize("phase", PHASES)
def test_a_purchase_that_is_given_up_in_any_phase_is_charged_once(phase: str, how: str, tmp_path: Path) -> None:
    sandbox = Sandbox("--seed", "7", "--provisioning-ms", "700")

    async def give_up() -> None:
        giving_up = GivingUp(tmp_path, phase)
        agent = hopline.AsyncAgentClient(**sandbox.account, http=giving_up.http, store=giving_up.store)
        giving_up.task = asyncio.create_task(_opened(agent))
        if phase == "before it begins":
            giving_up.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await giving_up.task
        assert sandbox.charges() == PHASES[phase]
        await agent.close()

    asyncio.run(give_up())
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent:
        if how == "all is resumed":
            agent.resume_all()
        session = agent.open_session(**BUY, intent="job-17", credentials=True)
        assert session.phase == "ready" and session.proxy.password
        state = sandbox.state()
    assert [charge["session_id"] for charge in state["charges"]] == [session.session_id]
    assert [found["status"] for found in state["sessions"]] == ["active"]
    sandbox.close()


async def _opened(agent: hopline.AsyncAgentClient) -> str:
    return (await agent.open_session(**BUY, intent="job-17", credentials=True)).session_id
