"""urllib3: a pool of the caller's own."""

from copy import copy
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any

from .._errors import misuse
from ._base import Failed, Request, Response, Transport, before_first_byte, body_of, is_without_key, lost, read_past, sent_headers
from ._words import home

if TYPE_CHECKING:
    import urllib3

MAY_REPEAT = "which may send a request twice; use one without it, or give `http` a callable that sends each request once"


def transport(pool: "urllib3.PoolManager") -> Transport:
    """Sends through the pool, without its repeats and redirects. One that sends in a way of its own is refused."""
    import urllib3
    from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, TimeoutError

    if is_own_pool(pool):
        misuse("client", f"the urllib3 pool has a `urlopen` of its own, {MAY_REPEAT}")

    def send(request: Request) -> Response:
        if is_own_pool(pool):  # it may have been changed since
            raise Failed("other", "never", f"the urllib3 pool has a `urlopen` of its own, {MAY_REPEAT}")
        chosen = of_its_own(pool) if is_without_key(request) else pool
        try:
            response = chosen.request(
                request.method,
                request.url,
                body=request.body,
                headers=sent_headers(request),
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=False,
                timeout=urllib3.Timeout(connect=request.timeout, read=request.timeout),
            )
            return answer(request, response)
        except (NewConnectionError, ConnectTimeoutError) as error:
            raise before_first_byte(error) from None
        except TimeoutError:
            raise Failed("timeout", "maybe") from None
        except HTTPError as error:
            raise lost(error) from None
        finally:
            if chosen is not pool:
                chosen.clear()

    return send


def answer(request: Request, response: Any) -> Response:
    """The answer, of which urllib3 has read the head; its connections take an interim answer for it. After a write its connection is closed:
    what comes behind that answer belongs to nobody."""
    from ._stdlib import chunks as chunks_of

    request.on_abort(lambda: response.shutdown())  # of urllib3 2.3 and later
    status, headers, chunks = response.status, response.headers, response.stream(1 << 16, decode_content=False)
    own: Any = getattr(response, "_original_response", None)
    is_last = isinstance(own, HTTPResponse) and (request.method != "GET" or 100 <= status < 200)
    try:
        if is_last:  # urllib3 would give the connection back with the last byte
            read_past(own)
            status, headers, chunks = own.status, own.headers, chunks_of(own)
        body, truncated = body_of(chunks, request.max_body)
    except TimeoutError:
        raise Failed("timeout", "maybe") from None
    except (OSError, ValueError, HTTPException):
        raise Failed("closed", "maybe") from None
    finally:
        if is_last or not response.isclosed():
            response.close()
        response.release_conn()
    return Response(status=status, headers=headers.items(), body=body, truncated=truncated)


def of_its_own(pool: Any) -> Any:
    """The same pool without its connections."""
    made = copy(pool)
    made.pools = type(pool.pools)(1)
    return made


_LIBRARIES = ("urllib3", "requests", "opentelemetry")


def is_own_pool(pool: Any) -> bool:
    """Whether a pool, or one that it makes, sends in a way that is not urllib3's."""
    from urllib3 import HTTPConnectionPool, PoolManager, ProxyManager

    manager = ProxyManager if isinstance(pool, ProxyManager) else PoolManager
    if any(is_own(pool, manager, name) for name in ("request", "request_encode_body", "request_encode_url", "urlopen")):
        return True
    pools = pool.pool_classes_by_scheme.values()
    return any(made.urlopen is not HTTPConnectionPool.urlopen and home(made.urlopen) not in _LIBRARIES for made in pools)


def is_own(thing: Any, library: type, name: str) -> bool:
    """Whether a method is another one than the library's. What only watches it hands on where it was written."""
    method = getattr(thing, name, None)
    return getattr(method, "__func__", None) is not getattr(library, name) and home(method) not in _LIBRARIES
