"""requests: a session of the caller's own."""

from typing import TYPE_CHECKING, Any

from .._errors import misuse
from ._base import Failed, Request, Response, Transport, sent_headers
from ._urllib3 import MAY_REPEAT, answer, failure, is_own, is_own_pool, of_its_own, watched
from ._words import home, never_left, way_of_its_own, words_of

if TYPE_CHECKING:
    import requests


def transport(session: "requests.Session") -> Transport:
    """Sends through the session's adapters, with its proxies and certificates, but without its redirects, authentication, hooks and other
    additions of a session to a send, such as a cache. A session whose adapters repeat, or send in a way of their own, is refused, and so is
    one that sends in a way of its own: a test may have replaced it, and expect that nothing is sent. The replacement by requests-mock is
    used.
    """
    from requests import Request as Prepared
    from requests.exceptions import ConnectTimeout, InvalidProxyURL, InvalidSchema, InvalidURL, RequestException, Timeout
    from urllib3.exceptions import EmptyPoolError

    for prefix, adapter in session.adapters.items():
        if prefix.lower().startswith("http") and (repeats := _repeats(prefix, adapter)) is not None:
            misuse("client", repeats)
    if (own := _sends_itself(session)) is not None:
        misuse("client", own)

    def send(request: Request) -> Response:
        if (own := _sends_itself(session)) is not None:  # may have changed since
            raise Failed("other", "never", own)
        try:
            made = Prepared(request.method, request.url, data=request.body, headers=sent_headers(request), auth=_as_it_is)
            prepared = session.prepare_request(made)
            prepared.hooks = {"response": []}
            is_heard = home(session.send) == _HEARD  # then other threads may see its adapter
            adapter: Any = None if is_heard else session.get_adapter(request.url)
            settings: Any = session.merge_environment_settings(request.url, {}, True, None, None)
        except Exception as error:
            raise Failed("other", "never", f"requests could not prepare the request: {words_of(error, request)}") from None
        prefix = next((prefix for prefix, known in session.adapters.items() if known is adapter), request.url)
        if not is_heard and (repeats := _repeats(prefix, adapter)) is not None:  # may be mounted since
            raise Failed("other", "never", repeats)
        settings["timeout"] = (request.timeout, request.timeout)
        fresh = None
        try:
            if is_heard:
                response = session.send(prepared, allow_redirects=False, **settings)
            else:
                if request.method != "GET":  # a write gets a connection that nobody has used
                    adapter = fresh = _of_its_own(adapter)
                response = _watched(adapter, request).send(prepared, **settings)
            return answer(request, response.raw)
        except (InvalidSchema, InvalidURL, InvalidProxyURL) as error:
            # An adapter raises these before it connects.
            raise Failed("other", "never", f"requests could not connect: {words_of(error, request)}") from None
        except ConnectTimeout:
            raise Failed("timeout", "never") from None
        except Timeout:
            raise Failed("timeout", "maybe") from None
        except (RequestException, EmptyPoolError) as error:
            raise failure(error) from None
        except Failed:
            raise
        except Exception as error:
            raise never_left(error, request) or error
        finally:
            if fresh is not None:
                for manager in (fresh.poolmanager, *fresh.proxy_manager.values()):  # the rest is the caller's adapter's, too
                    manager.clear()

    return send


_HEARD = "requests_mock"
"""The test tool that answers in place of `Session.send`."""
_PASSED_BY = ("requests", "requests_cache", "requests_oauthlib", "requests_toolbelt", "opentelemetry")
"""Packages whose sessions change or watch a request, and leave the adapters as they are."""
_WAYS = ("send", "request", "get", "post", "put", "patch", "delete")


def _sends_itself(session: Any) -> str | None:
    """Returns the fault of a session that sends in a way of its own."""
    names = tuple(name for name in _WAYS if name != "send" or home(session.send) != _HEARD)
    return way_of_its_own(session, names, _PASSED_BY)


def _same(adapter: Any) -> Any:
    made: Any = object.__new__(type(adapter))
    vars(made).update(vars(adapter))
    return made


def _watched(adapter: Any, request: Request) -> Any:
    """The same adapter for one request."""
    made = _same(adapter)
    made.poolmanager = watched(adapter.poolmanager, request)
    made.proxy_manager_for = lambda *given, **settings: watched(adapter.proxy_manager_for(*given, **settings), request)
    return made


def _of_its_own(adapter: Any) -> Any:
    """The same adapter without its connections."""
    made = _same(adapter)
    made.poolmanager = of_its_own(adapter.poolmanager)
    made.proxy_manager = {name: of_its_own(pool) for name, pool in adapter.proxy_manager.items()}
    return made


def _as_it_is(prepared: Any) -> Any:
    """Replaces the session's authentication, which could send a request a second time."""
    return prepared


def _repeats(prefix: str, adapter: Any) -> str | None:
    """Returns the fault of an adapter that repeats failed requests, or may do so."""
    from requests.adapters import HTTPAdapter

    repeats = getattr(adapter, "max_retries", None)
    counts = [getattr(repeats, name, None) for name in ("total", "connect", "read", "redirect", "status", "other")]
    if any(count for count in counts if count is not None):
        return f"the requests.Session repeats requests to `{prefix}` by itself; mount an adapter with max_retries=0"
    if is_own(adapter, HTTPAdapter, "send") or is_own_pool(adapter.poolmanager):
        return f"the adapter for `{prefix}` has a `send` or a pool of its own, {MAY_REPEAT}"
    return None
