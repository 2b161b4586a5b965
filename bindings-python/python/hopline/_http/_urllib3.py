"""urllib3: a pool of the caller's own."""

from typing import TYPE_CHECKING, Any

from .._errors import misuse
from ._base import Failed, Request, Response, Transport, before_first_byte, body_of, lost, sent_headers

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
        try:
            response = pool.request(
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
        except (NewConnectionError, ConnectTimeoutError) as error:
            raise before_first_byte(error) from None
        except TimeoutError:
            raise Failed("timeout", "maybe") from None
        except HTTPError as error:
            raise lost(error) from None
        request.on_abort(lambda: response.shutdown())  # of urllib3 2.3 and later
        body, truncated = body_of(response.stream(1 << 16, decode_content=False), request.max_body)
        if truncated:
            response.close()
        response.release_conn()
        return Response(status=response.status, headers=response.headers.items(), body=body, truncated=truncated)

    return send


def is_own_pool(pool: Any) -> bool:
    """Whether a pool, or one that it makes, sends in a way that is not urllib3's."""
    from urllib3 import HTTPConnectionPool, PoolManager, ProxyManager

    manager = ProxyManager if isinstance(pool, ProxyManager) else PoolManager
    if any(is_own(pool, manager, name) for name in ("request", "request_encode_body", "request_encode_url", "urlopen")):
        return True
    return any(made.urlopen is not HTTPConnectionPool.urlopen for made in pool.pool_classes_by_scheme.values())


def is_own(thing: Any, library: type, name: str) -> bool:
    """Whether a method is another one than the library's."""
    return getattr(getattr(thing, name, None), "__func__", None) is not getattr(library, name)
