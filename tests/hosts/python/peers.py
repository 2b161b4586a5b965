"""The odd server and the recording proxies that all hosts share; see `tests/peers`."""

import json
import os
import subprocess
from typing import Any

import hopline
from sandbox import control


class Peers:
    """The program, and what it says that it is. The program ends when this object is closed, or with this process."""

    def __init__(self, *options: str) -> None:
        program = os.environ.get("HOPLINE_PEERS", "hopline-peers")
        self._process = subprocess.Popen([program, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.ready: dict[str, Any] = json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def behind(self, folder: str, account: dict[str, str]) -> dict[str, str]:
        """An account whose service is behind the odd server."""
        path = account["base_url"].rpartition("/")[2]
        return {**account, "base_url": f"{self.ready['odd_url']}/{folder}/{path}"}

    def proxy(self, kind: Any, name: str, username: str = "me", password: str = "p") -> hopline.Proxy:
        host, _, port = self.ready[kind][name].rpartition(":")
        return hopline.Proxy(host=host, port=int(port), protocol=kind, username=hopline.Secret(username), password=hopline.Secret(password))

    def logins(self) -> list[tuple[str, str]]:
        """Those that proxies were given since this was asked last."""
        told = control(self.ready["control_url"])["logins"]
        control(self.ready["control_url"], method="DELETE")
        given = [(login["username"], login["password"]) for login in told if login["username"] is not None]
        return [(bytes.fromhex(username).decode(), bytes.fromhex(password).decode()) for username, password in given]
