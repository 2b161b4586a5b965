"""urllib3: a pool of the caller's own."""

from copy import copy
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any

from .._errors import misuse
from ._base import Failed, Request, Response, Transport, before_first_byte, body_of, break_off, causes, lost, read_past, sent_headers
from ._words import home

if TYPE_CHECKING:
    import urllib3

MAY_REPEAT = "which may send a request twice; use one without it, or give `http` a callable that sends each request once"


def transport(pool: "urllib3.PoolManager") -> Transport:
    """Sends through the pool, without its repeats and redirects. A pool that sends in a way of its own is refused."""
    import urllib3
    from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, TimeoutError

    if is_own_pool(pool):
        misuse("client", f"the urllib3 pool has a `urlopen` of its own, {MAY_REPEAT}")

    def send(request: Request) -> Response:
        if is_own_pool(pool):  # may have changed since
            raise Failed("other", "never", f"the urllib3 pool has a `urlopen` of its own, {MAY_REPEAT}")
        # A write gets a connection that nobody has used: the service may close any other one at the same moment.
        chosen = pool if request.method == "GET" else of_its_own(pool)
        try:
            response = watched(chosen, request).request(
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
            raise failure(error) from None
        finally:
            if chosen is not pool:
                chosen.clear()

    return send


def failure(error: Exception) -> Failed:
    """Interprets an error of urllib3, or one that was made from it. Only its report that a connection never came about, or that none was
    free, is certain.
    """
    from urllib3.exceptions import EmptyPoolError, NewConnectionError

    if isinstance(error, EmptyPoolError):
        return Failed("timeout", "never", "nothing was sent, since no connection of the urllib3 pool was free in time")
    found = next((cause for cause in causes(error) if isinstance(cause, NewConnectionError)), None)
    return lost(error) if found is None else before_first_byte(found)


def answer(request: Request, response: Any) -> Response:
    """The answer, of which urllib3 has read the head; its connections take an interim answer for it. After a write its connection is
    closed: data behind that answer belongs to no request.
    """
    from ._stdlib import chunks as chunks_of

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
        request.is_answered()
        if is_last or not response.isclosed():
            response.close()
        response.release_conn()
    return Response(status=status, headers=headers.items(), body=body, truncated=truncated)


def of_its_own(pool: Any) -> Any:
    """A copy of the pool without its connections."""
    made = copy(pool)
    made.pools = type(pool.pools)(1)
    return made


def watched(manager: Any, request: Request) -> Any:
    """The same pool for one request: the connection that it gets can be broken off before there is an answer, and nothing is sent over one
    that comes about when nobody waits any more."""
    from urllib3.exceptions import HTTPError

    made: Any = copy(manager)

    def connection_from_host(*given: Any, **settings: Any) -> Any:
        kept = manager.connection_from_host(*given, **settings)

        def validate(connection: Any) -> None:
            try:
                kept._validate_conn(connection)
                if connection.sock is None:  # over plain HTTP it would connect as it sends
                    connection.connect()
            except (HTTPError, OSError, ValueError) as error:  # a ValueError: urllib3 1.26 refuses a certificate by one
                raise before_first_byte(error) from None
            if request._is_over:
                raise Failed("aborted", "never")
            plain = connection.sock  # the connection forgets it once the answer says that it is the last one
            request.on_abort(lambda: break_off(plain))

        def give_back(connection: Any) -> None:
            request.is_answered()  # from now on the connection may be another request's
            kept._put_conn(connection)

        def get(timeout: float | None = None) -> Any:
            # In a pool that blocks, the thread would wait without end for a connection that the program has.
            return kept._get_conn(request.timeout if timeout is None else timeout)

        pool: Any = copy(kept)
        pool._get_conn, pool._validate_conn, pool._put_conn = get, validate, give_back
        return pool

    made.connection_from_host = connection_from_host
    return made


_LIBRARIES = ("urllib3", "requests", "opentelemetry")


def is_own_pool(pool: Any) -> bool:
    """Returns true if a pool, or one that it makes, sends in another way than urllib3's."""
    from urllib3 import HTTPConnectionPool, PoolManager, ProxyManager

    manager = ProxyManager if isinstance(pool, ProxyManager) else PoolManager
    if any(is_own(pool, manager, name) for name in ("request", "request_encode_body", "request_encode_url", "urlopen")):
        return True
    pools = pool.pool_classes_by_scheme.values()
    return any(made.urlopen is not HTTPConnectionPool.urlopen and home(made.urlopen) not in _LIBRARIES for made in pools)


def is_own(thing: Any, library: type, name: str) -> bool:
    """Returns true if a method is not the library's. A wrapper that only watches keeps the original's module."""
    method = getattr(thing, name, None)
    return getattr(method, "__func__", None) is not getattr(library, name) and home(method) not in _LIBRARIES
