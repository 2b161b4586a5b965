"""A worker of a deployment: `/page?url=…` reads a page through the pool, and `/ready` says whether it can. SIGTERM ends it in good order."""

import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import hopline
import job
import requests


def is_ready() -> tuple[int, str]:
    """Reads no store and sends nothing, so it may be asked every second."""
    status = job.pool().status()
    if status.hold is None or status.ready > 0 or status.leased > 0:
        return 200, "ready"
    return 503, f"{status.hold.reason}: {status.hold.why}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        try:
            status, text = is_ready() if asked.path == "/ready" else (200, job.fetch(parse_qs(asked.query)["url"][0]))
        except (hopline.HoplineError, requests.RequestException) as error:
            status, text = 503, str(error)
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = False  # closing it waits for the requests that are under way


server = Server(("", int(sys.argv[1])), Handler)
print(f"listening on port {server.server_port}", flush=True)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
server.server_close()
job.close(grace=10)
