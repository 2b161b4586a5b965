"""A target site that crawlers crawl through pools, and what its log shows of it."""

import gzip
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from sandbox import Sandbox

POOL: dict[str, Any] = {"name": "shop", "size": 3, "session_type": "dynamic", "product_no": "dynamic-world", "quantity": 0.1, "protocol": "http"}

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = os.environ.get("HOPLINE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
TRUSTING = ["--ignore-certificate-errors"]
"""Any certificate is trusted: the target has a new one for each connection, for which Playwright's own option asks forever."""
PAGES = int(os.environ.get("HOPLINE_BROWSER_PAGES", "24"))
"""As a browser takes half a second for a page, few of them in every run."""
needs_chromium = pytest.mark.skipif(not CHROMIUM and os.environ.get("CI") != "true", reason="Chromium is not installed; HOPLINE_CHROMIUM may name the program")


@dataclass
class Target:
    """The site, over https with a certificate of a private authority, and the service whose sessions lead there."""

    sandbox: Sandbox

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return self.sandbox.ready["tls_target"].rstrip("/")

    @property
    def authority(self) -> str:
        """The file of the authority."""
        return self.sandbox.ready["tls_ca"]

    def rules(self, **rules: Any) -> None:
        """Changes its rules."""
        self.sandbox.control("target", rules)

    def visits(self) -> list[dict[str, Any]]:
        """The requests that came through sessions, the oldest first."""
        visits: list[dict[str, Any]] = self.sandbox._ask("visits", None)["visits"]
        return [visit for visit in visits if visit["exit"] != "127.0.0.1" and visit["path"].startswith("/p")]

    def check_pages(self, pages: int, *, is_browser: bool = False) -> None:
        """Each page was answered once but for what was blocked, by no exit after its block, over one connection an exit unless a browser decides;
        rotations are blocks, and nothing was bought beyond the pool's size.
        """
        visits = self.visits()
        answered = Counter(visit["path"] for visit in visits if visit["status"] == 200)
        blocked = [visit for visit in visits if visit["status"] == 403]
        assert answered == Counter(f"/p{page}" for page in range(pages)), answered
        assert len(visits) == pages + len(blocked) and blocked
        exits = {visit["exit"] for visit in visits}
        assert is_browser or len({(visit["exit"], visit["connection"]) for visit in visits}) == len(exits)
        last: dict[str, int] = {}
        for visit in visits:
            assert last.get(visit["exit"]) != 403, [one for one in visits if one["exit"] == visit["exit"]]
            last[visit["exit"]] = visit["status"]
        # An exit whose block came at the end may not have been changed any more.
        rotations = self.sandbox.times("rotate_session")
        assert len(exits) - 3 <= rotations <= len(blocked) and len(blocked) - rotations <= 3, (rotations, len(blocked), len(exits))
        assert self.sandbox.charges() == 3


@contextmanager
def target(folder: Path, *options: str) -> Iterator[Target]:
    """A sandbox with its site. Its files lie in the folder."""
    quick = ("--seed", "7", "--provisioning-ms", "0", "--session-limit", "1000", "--rate-limit", "1000000")
    sandbox = Sandbox(*quick, "--tls", str(folder), *options)
    try:
        yield Target(sandbox)
    finally:
        sandbox.close()


class CookieSite:
    """A site that gives each exit a cookie with its address, all of it compressed. The first request of page 5 gets a captcha, of page 6 a redirect
    to one, and of page 7 a captcha, too. Each page below `/step` leads to a page that needs a cookie.
    """

    def __init__(self) -> None:
        self.visits: list[tuple[str, str, str | None]] = []
        """The exit, path and cookie of each request."""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                exit = self.client_address[0]
                is_first = all(path != self.path for _, path, _ in site.visits)
                site.visits.append((exit, self.path, self.headers.get("Cookie")))
                is_blocked = self.path in ("/p5", "/p7") and is_first
                page = b"a captcha" if is_blocked else b"no cookie" if "?" in self.path and "step=1" not in self.headers.get("Cookie", "") else b"a page"
                body = gzip.compress(b"<p>" + page + b"</p>")
                leads = "/captcha" if self.path == "/p6" and is_first else f"{self.path[5:]}?seen" if self.path.startswith("/step/") else None
                self.send_response(302 if leads else 200)
                for name, value in (("Set-Cookie", f"exit={exit}"), ("Content-Encoding", "gzip"), ("Content-Type", "text/html")):
                    self.send_header(name, value)
                if leads:
                    self.send_header("Location", leads)
                    self.send_header("Set-Cookie", "step=1; Path=/")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "CookieSite":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()


def last_line(out: str) -> dict[str, Any]:
    """The last line that a program printed."""
    told: dict[str, Any] = json.loads(out.splitlines()[-1])
    return told


def ran_page(name: str, site: Target, folder: Path, *arguments: str) -> str:
    """The output of a program of a page, which is to end well."""
    (folder / "program.py").write_text((ROOT / "core" / "docs" / "programs" / "python" / f"{name}.py").read_text())
    account = {"HOPLINE_BASE_URL": site.sandbox.ready["agent_url"], "HOPLINE_API_KEY": site.sandbox.ready["api_key"]}
    run = [sys.executable, "program.py", *arguments]
    done = subprocess.run(run, cwd=folder, env=os.environ | account, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    return done.stdout
