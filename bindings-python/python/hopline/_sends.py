"""The outcome of a send, on its way to the core."""

from __future__ import annotations

from typing import Any, cast

from . import _hopline
from ._http import Failed, Request, Response, inflated, words_of

_COMPRESSED = (b"\x1f\x8b", b"x")
"""The first bytes of gzip and deflate data, with which no JSON begins."""


def tell(core: _hopline.Client, step: int, request: Request, answer: Any, owner: _hopline.Owner | None = None) -> _hopline.Turn | None:
    """Passes the outcome of a send to the core: a response, an exception, or neither. Returns the next turn of an owner."""
    if type(answer) is not Response or type(answer.body) is not bytes or answer.body[:1] in b"\x1fx" or type(answer.headers) is not dict:
        answer = _plain(request, answer)
    if type(answer) is Response:
        try:
            return core.respond(step, answer.status, answer.headers, answer.body, answer.truncated, owner)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            answer = ("other", None, f"the transport's response could not be read: {words_of(error, request)}")
    kind, sent, note = cast(Any, answer)
    try:
        return core.failed(step, kind, sent, note, owner)
    except (TypeError, ValueError):
        return core.failed(step, "other", None, None, owner)


def _plain(request: Request, answer: Any) -> Any:
    """Returns the outcome of a send without objects of the caller: a response whose headers are not read on every access, or the kind of a
    failure, its reach and a note. An outcome from another import of this package counts, too.
    """
    try:
        if _is_a("Response", answer):
            body = answer.body if isinstance(answer.body, bytes) else bytes(memoryview(answer.body))
            headers, truncated = answer.headers, answer.truncated
            if body.startswith(_COMPRESSED):
                body, is_cut = inflated(body, request.max_body)
                truncated = truncated or is_cut
            if type(headers) is not dict:
                headers = list(headers.items() if hasattr(headers, "items") else headers)
            return Response(status=answer.status, headers=headers, body=body, truncated=truncated)
        if _is_a("Failed", answer):
            return answer.kind, answer.sent, answer.why
    except Exception as error:
        return "other", "maybe", f"the transport's response could not be read: {words_of(error, request)}"
    if isinstance(answer, BaseException):
        return "other", None, f"the transport raised {words_of(answer, request)}"
    return "other", None, f"the transport returned `{type(answer).__name__}` instead of a hopline.Response"


def lost(core: _hopline.Client, step: int) -> None:
    """A send ended without an outcome."""
    core.failed(step, "aborted", None)


def _is_a(name: str, answer: object) -> bool:
    # Not in a generator, which would swallow an interrupt.
    for base in type(answer).__mro__:
        if base.__name__ == name and base.__module__ == "hopline._http._base":
            return True
    return False


__all__ = ["Failed", "lost", "tell"]
