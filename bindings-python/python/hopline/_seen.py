"""Observations from requests through a session, in any form that a program has: a status, a word, a response or an exception of any HTTP
client. No HTTP client is imported: the core knows their exceptions by their names and texts, which are kept nowhere.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Literal, Protocol, TypeAlias

from ._errors import ask, invalid, misuse
from ._values import dumps
from ._work import now

SeenWord: TypeAlias = Literal["captcha", "timeout", "block", "proxy", "target", "unknown"]
"""The outcome of a request without a usable answer.

- `captcha`: A page that asks for a captcha.
- `timeout`: No answer in time.
- `block`: A block that shows in another way.
- `proxy`: The proxy refused the request, or could not be reached.
- `target`: The target could not be reached, or failed in another way. This is no observation about the session.
- `unknown`: A failure that may be the proxy's or the target's, such as a connection that broke off. After three in a row the session has to
  be read again; a pool does that by itself.
"""


class _WithStatus(Protocol):
    @property
    def status(self) -> Any: ...


class _WithStatusCode(Protocol):
    @property
    def status_code(self) -> Any: ...


Seen: TypeAlias = int | SeenWord | BaseException | _WithStatus | _WithStatusCode
"""An observation from a request through a session: an HTTP status, a word, a response, or the exception of any HTTP client. An unknown
exception is a `timeout` or the `proxy`'s failure if its name or its words say so, and else `unknown`.
"""
_WORDS = ("captcha", "timeout", "block", "proxy", "target", "unknown")
_LINKS, _LETTERS = 16, 4000
"""The most exceptions of a chain that are read, and the most letters of each."""


def seen_text(seen: Seen) -> str:
    """An observation in the core's format."""
    if isinstance(seen, BaseException):
        return dumps(ask("seen", chain=[_facts(one) for one in islice(_chain(seen), _LINKS)]))
    told = _seen(seen)
    return dumps(told if isinstance(told, str) else {"status": told})


def is_block(blocked: Callable[[Any], object] | None, seen: object) -> bool:
    """Asks a pool's rule whether a response is a block."""
    if blocked is None or isinstance(seen, int | str | BaseException):
        return False
    found = blocked(seen)
    if hasattr(found, "__await__"):
        getattr(found, "close", lambda: None)()
        misuse("observe", "`blocked` returned an awaitable, and must say at once whether a response is a block; nothing was observed")
    return bool(found)


def wait_ms(seen: object) -> int | None:
    """The wait that the target asks for, by the Retry-After of a response, or of the one that an exception was made from."""
    headers = getattr(seen, "headers", None) or getattr(getattr(seen, "response", None), "headers", None)
    try:
        told = {str(name).lower(): _text(value) for name, value in dict(headers or ()).items()}
    except (TypeError, ValueError):  # not a valid header
        return None
    if not told.get("retry-after"):
        return None
    answer = ask("retry_after", header=told["retry-after"], date=told.get("date", ""), now=now()[0])
    wait: int | None = answer["wait_ms"]
    return wait


def _text(value: object) -> str:
    """The value of a header; all values if it came several times."""
    text = ", ".join(map(_text, value)) if isinstance(value, list | tuple) else value
    text = text.decode("latin-1") if isinstance(text, bytes) else str(text)
    return text.encode("utf-8", "replace").decode()


def _seen(seen: object) -> int | str:
    for status in (seen, getattr(seen, "status_code", None), getattr(seen, "status", None)):
        if isinstance(status, int) and not isinstance(status, bool):
            return status
    if isinstance(seen, str) and seen in _WORDS:
        return seen
    known = ", ".join(f"`{word}`" for word in _WORDS)
    invalid("observe", "seen", f"must be an HTTP status, a response, an exception, or one of {known}")


def _facts(error: BaseException) -> dict[str, Any]:
    """The facts about an exception that the core compares with its knowledge of HTTP clients."""
    names, code, status, is_in_tls = _names(type(error)), _code(error), _status(error), _in_tls(error)
    facts = {"names": names, "code": code, "status": status, "said": _said(error), "during": "tls" if is_in_tls else None}
    return {name: fact for name, fact in facts.items() if fact is not None}


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and its causes: an HTTP client wraps those of its own dependencies. An exception that the program was handling
    meanwhile, such as the failure of an earlier request, is not one of them.
    """
    found: set[int] = set()
    rest: list[object] = [error]
    while rest:
        one = rest.pop(0)
        if id(one) in found or not isinstance(one, BaseException | list | tuple):
            continue
        found.add(id(one))
        if isinstance(one, BaseException):
            yield one
            rest += [*one.args, *(getattr(one, name, None) for name in ("reason", "reasons", "value", "exceptions")), one.__cause__]
        else:
            rest += one[:_LINKS]


def _names(kind: type) -> list[str]:
    """The names of a class and its base classes, each behind its package."""
    return [f"{_package(base)}.{base.__name__}" for base in kind.__mro__ if base not in (object, BaseException, Exception)]


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _code(error: BaseException) -> str | None:
    """The name of an error of the system, or the number that a client gives its errors, behind its package."""
    if isinstance(error, OSError):
        return errno.errorcode.get(error.errno) if isinstance(error.errno, int) else None
    code = getattr(error, "__dict__", {}).get("code")
    for number in (code, *error.args[:1]):
        if isinstance(number, int):
            return f"{_package(type(error))} {int(number)}"
    return code if isinstance(code, str) else None


def _said(error: BaseException) -> str:
    try:
        return str(error)[:_LETTERS].encode("utf-8", "replace").decode()
    except Exception:  # of a class that can't be printed
        return ""


def _in_tls(error: BaseException) -> bool:
    at = error.__traceback__
    while at is not None and at.tb_frame.f_code.co_name != "start_tls":
        at = at.tb_next
    return at is not None


def _status(error: BaseException) -> int | None:
    """The status of an exception that a response was made into."""
    if _package(type(error)) == "curl_cffi" and getattr(error, "code", 0) not in (0, 47):  # which has what had come of the answer; 47: redirects
        return None
    for one in (error, getattr(error, "response", None)):
        for name in ("status", "status_code", "code"):
            status = getattr(one, name, None)
            if isinstance(status, int) and 100 <= status < 600:
                return status
    return None


def check_blocked(blocked: object) -> None:
    """Refuses a rule of blocks that can't say at once whether a response is one: what a coroutine function returns is always true."""
    if blocked is None:
        return
    from inspect import iscoroutinefunction

    if not callable(blocked) or iscoroutinefunction(blocked) or iscoroutinefunction(getattr(blocked, "__call__", None)):
        raise TypeError("`blocked` must be a function of a response, which returns true or false, and no coroutine function")


def shown(target: str | None) -> str | None:
    """A target for people: without a login and a query."""
    return None if target is None else target.partition("?")[0].partition("#")[0].rpartition("@")[2]
