"""A client without a service: what it is made with, and what it is answered."""

import gc
import time
from collections.abc import Callable, Iterable
from typing import Any
from warnings import WarningMessage

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


def until_dropped(warned: Iterable[WarningMessage]) -> None:
    """Collects garbage until a client has said that it was dropped, which is the last that it does. Another thread may be the one that drops it: one
    of its own that looks at it just now, or one that collects garbage.
    """
    until(lambda: gc.collect() is not None and any("a hopline client" in str(warning.message) for warning in warned))
