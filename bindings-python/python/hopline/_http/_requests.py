"""requests: a session of the caller's own."""

from typing import TYPE_CHECKING, Any

from .._errors import misuse
from ._base import Failed, Request, Response, Transport, before_first_byte, body_of, sent_headers

if TYPE_CHECKING:
    import requests


def transport(session: "requests.Session") -> Transport:
    """Sends through the session's adapters, with its proxies and certificates, but without its redirects, authentication, hooks and
    whatever else a session adds to a send, such as a cache. One whose adapters repeat is refused."""
    from requests import Request as Prepared
    from requests.exceptions import ConnectTimeout, InvalidProxyURL, InvalidSchema, InvalidURL, RequestException, Timeout

    if (repeats := _repeats(session)) is not None:
        misuse("client", repeats)

    def send(request: Request) -> Response:
        if (repeats := _repeats(session)) is not None:  # an adapter may have been mounted since
            raise Failed("other", "never", repeats)
        try:
            made = Prepared(request.method, request.url, data=request.body, headers=sent_headers(request), auth=_as_it_is)
            prepared = session.prepare_request(made)
            adapter = session.get_adapter(request.url)
            settings: Any = session.merge_environment_settings(request.url, {}, True, None, None)
        except RequestException as error:
            raise Failed("other", "never", f"requests could not prepare the request: {type(error).__name__}") from None
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


def _repeats(session: "requests.Session") -> str | None:
    """What is wrong with a session that sends by itself what failed."""
    for prefix, adapter in session.adapters.items():
        repeats = getattr(adapter, "max_retries", None)
        counts = [getattr(repeats, name, None) for name in ("total", "connect", "read", "redirect", "status", "other")]
        if any(count for count in counts if count is not None):
            return f"the requests.Session repeats requests to `{prefix}` by itself; mount an adapter with max_retries=0"
    return None


def _failure(error: Exception) -> Failed:
    from urllib3.exceptions import NewConnectionError

    from ._base import causes

    # requests wraps what urllib3 said: only its word on a connection that never came about is certain.
    found = next((cause for cause in causes(error) if isinstance(cause, NewConnectionError)), None)
    return Failed("closed", "maybe") if found is None else before_first_byte(found)
