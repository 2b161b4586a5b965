"""The standard library, for programs that bring no HTTP client. One connection a request, and no proxy."""

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

from ._base import Failed, Request, Response, before_first_byte, body_of, break_off, sent_headers

_CHUNK = 1 << 16


def send(request: Request) -> Response:
    """Sends a request over a connection of its own."""
    url = urlsplit(request.url)
    make = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = make(url.hostname or "", url.port, timeout=request.timeout)
    request.on_abort(lambda: break_off(connection.sock))
    try:
        try:
            connection.connect()
        except (OSError, UnicodeError) as error:
            raise before_first_byte(error) from None
        target = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
        try:
            headers = {**sent_headers(request), "connection": "close"}
            connection.request(request.method, target, body=request.body, headers=headers)
            response = connection.getresponse()
        except TimeoutError:
            raise Failed("timeout", "maybe") from None
        except (OSError, http.client.HTTPException):
            raise Failed("closed", "maybe") from None
        body, truncated = body_of(_chunks(response), request.max_body)
        return Response(status=response.status, headers=response.getheaders(), body=body, truncated=truncated)
    finally:
        connection.close()


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    left = response.length
    while chunk := response.read1(_CHUNK):
        left = left and left - len(chunk)
        yield chunk
    if left:
        raise http.client.IncompleteRead(b"")  # `read1` ends quietly where the connection does
