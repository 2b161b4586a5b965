"""requests: a session of the caller's own."""

from typing import TYPE_CHECKING, Any

from .._errors import misuse
from ._base import Failed, Request, Response, Transport, before_first_byte, body_of, causes, lost, sent_headers
from ._urllib3 import MAY_REPEAT, is_own, is_own_pool

if TYPE_CHECKING:
    import requests


def transport(session: "requests.Session") -> Transport:
    """Sends through the session's adapters, with its proxies and certificates, but without its redirects, authentication, hooks and
    whatever else a session adds to a send, such as a cache. One whose adapters repeat, or send in a way of their own, is refused."""
    from requests import Request as Prepared
    from requests.exceptions import ConnectTimeout, InvalidProxyURL, InvalidSchema, InvalidURL, RequestException, Timeout

    for prefix, adapter in session.adapters.items():
        if prefix.lower().startswith("http") and (repeats := _repeats(prefix, adapter)) is not None:
            misuse("client", repeats)

    def send(request: Request) -> Response:
        try:
            made = Prepared(request.method, request.url, data=request.body, headers=sent_headers(request), auth=_as_it_is)
            prepared = session.prepare_request(made)
            adapter = session.get_adapter(request.url)
            settings: Any = session.merge_environment_settings(request.url, {}, True, None, None)
        except RequestException as error:
            raise Failed("other", "never", f"requests could not prepare the request: {type(error).__name__}") from None
        prefix = next((prefix for prefix, known in session.adapters.items() if known is adapter), request.url)
        if (repeats := _repeats(prefix, adapter)) is not None:  # it may have been mounted since
            raise Failed("other", "never", repeats)
        try:
            response = adapter.send(prepared, timeout=(request.timeout, request.timeout), **settings)
        except (InvalidSchema, InvalidURL, InvalidProxyURL) as error:
            # An adapter raises these before it connects.
            raise Failed("other", "never", f"requests could not connect: {type(error).__name__}") from None
        except ConnectTimeout:
            raise Failed("timeout", "never") from None
        except Timeout:
            raise Failed("timeout", "maybe") from None
        except RequestException as error:
            raise _failure(error) from None
        request.on_abort(lambda: response.raw.shutdown())  # of urllib3 2.3 and later
        with response:
            body, truncated = body_of(response.raw.stream(1 << 16, decode_content=False), request.max_body)
        return Response(status=response.status_code, headers=response.headers.items(), body=body, truncated=truncated)

    return send


def _as_it_is(prepared: Any) -> Any:
    """Takes the place of the session's authentication, which could send a request a second time."""
    return prepared


def _repeats(prefix: str, adapter: Any) -> str | None:
    """What is wrong with an adapter that sends by itself what failed, or may do so."""
    from requests.adapters import HTTPAdapter

    repeats = getattr(adapter, "max_retries", None)
    counts = [getattr(repeats, name, None) for name in ("total", "connect", "read", "redirect", "status", "other")]
    if any(count for count in counts if count is not None):
        return f"the requests.Session repeats requests to `{prefix}` by itself; mount an adapter with max_retries=0"
    if is_own(adapter, HTTPAdapter, "send") or is_own_pool(adapter.poolmanager):
        return f"the adapter for `{prefix}` has a `send` or a pool of its own, {MAY_REPEAT}"
    return None


def _failure(error: Exception) -> Failed:
    from urllib3.exceptions import NewConnectionError

    # requests wraps what urllib3 said: only its word on a connection that never came about is certain.
    found = next((cause for cause in causes(error) if isinstance(cause, NewConnectionError)), None)
    return lost(error) if found is None else before_first_byte(found)
