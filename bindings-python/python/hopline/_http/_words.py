"""Exceptions of other code in a form that people may see: the type, the place and the message, without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from types import FrameType
from typing import Any
from urllib.parse import quote

from .._values import Misfit, loads
from ._base import Failed, Request

_REDACTED = "[redacted]"
_LONGEST = 200
_READ = 4000
"""The part of an exception that is read."""
_RUN = 8
"""The number of letters in a row of a secret that count as a part of it."""
_PLAIN = ("accept", "content-type", "user-agent")
_LOGIN = re.compile(r"(?<=//)\S{0,300}@|\b(?:Basic|Bearer)\s+[^\s'\",;)]+|\beyJ[\w.-]+", re.IGNORECASE)
"""Texts that are secrets anywhere: a login in a URL, the value of an authorization, a token."""


def words_of(error: BaseException, request: Request | None = None) -> str:
    """An exception as part of a sentence, such as `TypeError at my_http.py:12: unexpected keyword 'contents'`."""
    try:
        text = re.sub(r"\s+", " ", str(error)[:_READ]).strip()
    except Exception:  # one of the caller's own
        text = ""
    text = _LOGIN.sub(_REDACTED, text)
    for secret in sorted(set(_secrets(request)), key=len, reverse=True) if request is not None else ():
        text = _without(text, secret)
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "…"
    return "".join((type(error).__name__, _place(error), f": {text}" if text else ""))


_BEFORE = ("get_connection_with_tls_context", "get_connection", "request_url", "cert_verify", "add_headers", "proxy_headers")
"""The functions that an adapter of requests calls before it sends."""


def never_left(error: BaseException, request: Request) -> Failed | None:
    """Returns the failure if an adapter of requests had not reached its send."""
    at = error.__traceback__
    while at is not None:
        is_adapter = at.tb_frame.f_globals.get("__name__") == "requests.adapters" and at.tb_frame.f_code.co_name == "send"
        if is_adapter and at.tb_next is not None:
            return unsent(error, request) if at.tb_next.tb_frame.f_code.co_name in _BEFORE else None
        at = at.tb_next
    return None


def unsent(error: BaseException, request: Request) -> Failed:
    """The failure of a send that had not begun."""
    return Failed("other", "never", f"nothing was sent, since the HTTP client raised {words_of(error, request)}")


def way_of_its_own(http: Any, names: tuple[str, ...], known: tuple[str, ...]) -> str | None:
    """Returns the fault of an HTTP client with a way of its own to send, which Hopline would bypass: a test may have replaced it, and
    expect that nothing is sent. The packages that do not change the methods that Hopline calls are known.
    """
    name = next((name for name in names if home(getattr(http, name)) not in known), None)
    if name is None:
        return None
    kind = f"{home(type(http).__init__) or 'HTTP'} client"
    return f"the {kind} has a `{name}` of its own, which would be passed by; use one without it, or give `http` a callable that uses it"


def home(method: Any) -> str:
    """The package of a method; empty if a test has replaced it."""
    names = getattr(getattr(method, "__func__", method), "__globals__", None)
    return str(names.get("__name__", "")).partition(".")[0] if isinstance(names, dict) else ""


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _place(error: BaseException) -> str:
    """The last line of the program itself, or if there is none, the last one of all."""
    at, places = error.__traceback__, []
    while at is not None:
        if _package(at.tb_frame) != "hopline":
            path = at.tb_frame.f_code.co_filename
            is_own = "site-packages" not in path and not _is_of_python(path)
            places.append((is_own, f" at {os.path.basename(path)}:{at.tb_lineno}"))
        at = at.tb_next
    own = [place for is_own, place in places if is_own] or [place for _, place in places]
    return own[-1] if own else ""


def _is_of_python(path: str) -> bool:
    return path.startswith((os.path.dirname(os.__file__), "<frozen"))


def _secrets(request: Request) -> Iterator[str]:
    """The secrets of a request: all of it except its address and its plainest headers."""
    for name, value in request.headers.items():
        if name not in _PLAIN:
            yield value
            yield value.rpartition(" ")[2]
    if request.body:
        text = request.body.decode("utf-8", "replace")
        try:
            yield from _texts(loads(text))
        except Misfit:
            yield text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _without(text: str, secret: str) -> str:
    """A text without a secret, in every spelling of Python or a URL, and without parts of it that could reveal it."""
    for form in {secret, repr(secret)[1:-1], ascii(secret)[1:-1], repr(secret.encode())[2:-1], quote(secret, ""), quote(secret)}:
        if form:
            text = text.replace(form, _REDACTED)
    if len(secret) < _RUN:
        return text
    known = {secret[at : at + _RUN] for at in range(len(secret) - _RUN + 1)}
    kept, at = [], 0
    while at < len(text):
        if text[at : at + _RUN] in known:
            end = at + _RUN
            while text[end - _RUN + 1 : end + 1] in known:
                end += 1
            kept.append(_REDACTED)
            at = end
        else:
            kept.append(text[at])
            at += 1
    return "".join(kept)
