"""urllib3: a pool of the caller's own."""

from typing import TYPE_CHECKING

from ._base import Failed, Request, Response, Transport, before_first_byte, body_of, sent_headers

if TYPE_CHECKING:
    import urllib3


def transport(pool: "urllib3.PoolManager") -> Transport:
    """Sends through the pool, without its repeats and redirects."""
    import urllib3
    from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, TimeoutError

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
        except HTTPError:
            raise Failed("closed", "maybe") from None
        request.on_abort(lambda: response.shutdown())  # of urllib3 2.3 and later
        body, truncated = body_of(response.stream(1 << 16, decode_content=False), request.max_body)
        if truncated:
            response.close()
        response.release_conn()
        return Response(status=response.status, headers=response.headers.items(), body=body, truncated=truncated)

    return send
