"""A client without a service: what it is made with, and what it is answered."""

import time
from collections.abc import Callable
from typing import Any

import hopline

SOUND: dict[str, Any] = {"base_url": "https://api.example/v1", "api_key": "key", "attempts": 1}
SESSION = b'{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"active"}}'


def bought(request: hopline.Request) -> hopline.Response:
    if request.method == "POST":
        return hopline.Response(status=202, body=SESSION)
    asked = request.url.partition("?")[0].rpartition("/")[2]
    return hopline.Response(status=200, body=SESSION.replace(b"s-1", asked.encode()))


def never(request: hopline.Request) -> Any:
    raise AssertionError("nothing was to be sent")


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
