"""A sandbox of the service, as a process of its own."""

import json
import os
import subprocess
import urllib.request
from typing import Any

PROGRAM = os.environ.get("HOPLINE_SANDBOX", "hopline-sandbox")


class Sandbox:
    """The program ends when this object is closed, or with this process."""

    def __init__(self, *options: str) -> None:
        command = [PROGRAM, "--with-parent", "--listen", "127.0.0.1:0", *options]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.ready: dict[str, str] = json.loads(self._process.stdout.readline())
        self.account = {"base_url": self.ready["agent_url"], "api_key": self.ready["api_key"]}
        self.reseller = {"base_url": self.ready["backend_url"], **{name: self.ready[name] for name in ("username", "password")}}

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def control(self, path: str, body: dict[str, Any]) -> None:
        self._ask(path, json.dumps(body).encode())

    def fault(self, operation: str | None, times: int = 1, **fault: Any) -> None:
        named = {"operation": operation} if operation else {}
        self.control("faults", {**named, "times": times, "fault": fault})

    def forget_faults(self) -> None:
        self._ask("faults", None, "DELETE")

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = self._ask("state", None)
        return state

    def requests(self) -> list[dict[str, Any]]:
        """Every request that came, whatever a fault made of it."""
        came: list[dict[str, Any]] = self._ask("requests", None)["requests"]
        return came

    def connections(self) -> int:
        """How many connections they came over."""
        return len({request["connection"] for request in self.requests()})

    def backend(self) -> dict[str, Any]:
        backend: dict[str, Any] = self.state()["backend"]
        return backend

    def times(self, operation: str) -> int:
        """How often the service has done an operation."""
        return int(self.state()["executions"].get(operation, 0))

    def visits(self) -> list[dict[str, Any]]:
        """The visits to the target, the oldest first."""
        visits: list[dict[str, Any]] = self._ask("visits", None)["visits"]
        return visits

    def charges(self) -> int:
        return len(self.state()["charges"])

    def _ask(self, path: str, body: bytes | None, method: str | None = None) -> Any:
        return control(f"{self.ready['control_url']}/{path}", body, method)


def control(url: str, body: bytes | None = None, method: str | None = None) -> Any:
    """Asks a program of the tests about itself."""
    # Not `urlopen` itself: the proxies of the environment are not for loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, data=body, method=method), timeout=10) as answer:
        return json.loads(answer.read() or b"null")
