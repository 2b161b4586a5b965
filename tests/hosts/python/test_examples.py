"""The whole programs of the page of examples, as they are printed: what each promises, over a kill where it promises that."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from canned import until
from conftest import ROOT
from crawling import Target, target
from test_crawl_playwright import CHROMIUM

PROGRAMS = ROOT / "core" / "docs" / "programs" / "python"


class Shop:
    """A site with lists of products, and an account. An exit gets a captcha, with status 200, from its eighth page on, and product 20 waits until
    `gate` is open.
    """

    LISTS, PRODUCTS = 3, 8

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, bool]] = []
        """The exit and path of each request, and whether it was blocked."""
        self.logins: list[str] = []
        self.gate = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                exit = self.client_address[0]
                if self.path == "/account":
                    known = self.headers.get("Cookie") == f"login={exit}"
                    return self.answer(200 if known else 401, f"the account at {exit}" if known else "who are you?")
                is_blocked = sum(one == exit for one, *_ in site.seen) >= 7
                site.seen.append((exit, self.path, is_blocked))
                if self.path == "/product/20":
                    site.gate.wait()
                return self.answer(200, "Are you a robot?" if is_blocked else site.page(self.path))

            def do_POST(self) -> None:
                given = self.rfile.read(int(self.headers["Content-Length"])).decode()
                site.logins.append(self.client_address[0])
                self.answer(200 if given == "user=me&password=secret" else 403, "", f"login={self.client_address[0]}; Max-Age=8640000")

            def answer(self, status: int, text: str, cookie: str | None = None) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "text/html")
                if cookie:
                    self.send_header("Set-Cookie", cookie)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def page(self, path: str) -> str:
        kind, _, number = path[1:].partition("/")
        if kind == "product":
            return f"<title>Product {number}</title><h1>Product {number}</h1><p class=price>{number}.50 USD</p>"
        first = int(number or 0) * self.PRODUCTS
        links = "".join(f"<a class=product href=/product/{first + one}>one</a>" for one in range(self.PRODUCTS))
        following = f"<a class=next href=/list/{int(number or 0) + 1}>next</a>" if int(number or 0) + 1 < self.LISTS else ""
        return f"<title>List</title>{links}{following}<script>document.title += ' {number or 0}'</script>"

    def __enter__(self) -> "Shop":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()


def start(name: str, site: Target, folder: Path, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    program = folder / f"{name}.py"
    if not program.exists():
        program.write_text((PROGRAMS / program.name).read_text())
    account = {"HOPLINE_BASE_URL": site.sandbox.ready["agent_url"], "HOPLINE_API_KEY": site.sandbox.ready["api_key"]}
    run = [sys.executable, f"{name}.py", *arguments]
    return subprocess.Popen(run, cwd=folder, env=os.environ | account | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(program: "subprocess.Popen[str]") -> list[str]:
    """The lines of a program that is to end well."""
    out, err = program.communicate(timeout=300)
    assert program.returncode == 0 and "Traceback" not in err, err
    return out.splitlines()


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_each_example_is_on_the_page_and_no_longer_than_it_may_be() -> None:
    page = (ROOT / "core" / "docs" / "examples.md").read_text()
    for program in PROGRAMS.glob("example_*.py"):
        assert f'"core/docs/programs/python/{program.name}"' in page and 30 <= len(program.read_text().splitlines()) <= 80, program


def test_a_shop_is_read_with_each_price_once_though_ctrl_c_comes_between(tmp_path: Path) -> None:
    with target(tmp_path) as site, Shop() as shop:
        first = start("example_prices", site, tmp_path, f"{shop.url}/list/0")
        until(lambda: len(shop.seen) >= 8)
        first.send_signal(signal.SIGINT)
        shop.gate.set()
        assert ended(first)[-2].endswith("ended: shutdown")
        before = len(lines(tmp_path / "prices.jsonl"))
        out = ended(start("example_prices", site, tmp_path, f"{shop.url}/list/0"))
        assert out[-2] == f"{shop.LISTS * shop.PRODUCTS - before} prices; ended: finished"
        # Product 20 waited, and so Ctrl-C came before the end.
        expected = [(f"Product {number}", f"{number}.50") for number in range(shop.LISTS * shop.PRODUCTS)]
        assert sorted((one["name"], one["price"]) for one in lines(tmp_path / "prices.jsonl")) == sorted(expected)
        assert any(blocked for *_, blocked in shop.seen) and site.sandbox.charges() <= 3


def test_a_crawl_of_many_pages_that_is_killed_fetches_only_what_is_missing(tmp_path: Path) -> None:
    pages = 400
    with target(tmp_path) as site, Shop() as shop:
        site.rules(block_after=30)
        plain = site.sandbox.ready["target_url"]
        # The last one is not answered before the first run is killed.
        urls = [*(f"{plain}p{page}" for page in range(pages)), f"{shop.url}/product/20"]
        (tmp_path / "urls.txt").write_text("\n".join(urls))
        results = tmp_path / "pages.jsonl"
        first = start("example_pages", site, tmp_path, "urls.txt", "pages.jsonl")
        until(lambda: len(lines_of(results)) >= 60)
        first.kill()
        first.communicate()
        shop.gate.set()
        had = lines_of(results)
        with results.open("a") as file:
            file.write('{"url": "half a li')
        assert ended(start("example_pages", site, tmp_path, "urls.txt", "pages.jsonl"))[-1] == "0 pages are missing"
        assert Counter(one["url"] for one in lines(results)) == Counter(urls)
        answered = Counter(visit["path"] for visit in site.visits() if visit["status"] == 200)
        # Those that were under way at the kill are fetched again, and no other.
        again = [path for path, times in answered.items() if times > 1]
        assert len(again) <= 40 and not {one["url"].removeprefix(plain.rstrip("/")) for one in had} & set(again)
        assert site.sandbox.charges() <= 10 and any(visit["status"] == 403 for visit in site.visits())


def lines_of(file: Path) -> list[dict[str, Any]]:
    """The whole lines of a file that somebody is writing."""
    return [json.loads(line) for line in file.read_text().rpartition("\n")[0].splitlines()] if file.exists() else []


def test_a_crawl_of_many_pages_that_gets_no_session_says_why_and_goes_on_later(tmp_path: Path) -> None:
    with target(tmp_path) as site:
        (tmp_path / "urls.txt").write_text(f"{site.sandbox.ready['target_url']}p0\n")
        site.sandbox.control("account", {"denied": ["create_session"]})
        why, left = ended(start("example_pages", site, tmp_path, "urls.txt", "pages.jsonl"))[-2:]
        assert why.startswith("stopped: ") and "the account may not buy" in why and left == "1 pages are missing"


def test_a_login_is_kept_on_one_session_over_kills_and_renewals(tmp_path: Path) -> None:
    with target(tmp_path) as site, Shop() as shop:

        def run() -> "subprocess.Popen[str]":
            return start("example_login", site, tmp_path, shop.url, SHOP_USER="me", SHOP_PASSWORD="secret")

        def killed(operation: str) -> None:
            """A run that is killed when the service has done an operation, of which it has not heard."""
            done = site.sandbox.times(operation)
            site.sandbox.fault(operation, kind="delay", ms=600_000)
            program = run()
            until(lambda: site.sandbox.times(operation) > done or program.poll() is not None)
            program.kill()
            program.communicate()

        killed("create_session")
        first = ended(run())
        assert first[0] == "logged in" and first[1].startswith("the account at 127.64.")
        assert ended(run()) == first[1:], "the cookie of the run before"
        assert (tmp_path / "cookies.txt").stat().st_mode & 0o077 == 0
        # The end of the first month is near, of the second one not.
        program = tmp_path / "example_login.py"
        text = program.read_text()
        assert text.count("timedelta(days=2)") == text.count("daily_cap_usd=20") == 1
        program.write_text(text.replace("timedelta(days=2)", "timedelta(days=40)").replace("daily_cap_usd=20", "daily_cap_usd=30"))
        killed("renew_session")
        assert ended(run()) == ended(run()) == first[1:]
        assert site.sandbox.charges() == 2
        # No run came for months.
        site.sandbox.control("clock", {"advance_ms": 70 * 86_400_000})
        late, page = ended(run())
        assert late.startswith("renewed on ") and page == first[1] and ended(run())[-1] == page
        assert len(shop.logins) == 1 and site.sandbox.charges() == 3 and len(site.sandbox.state()["sessions"]) == 1


@pytest.mark.skipif(not CHROMIUM and os.environ.get("CI") != "true", reason="Chromium is not installed; HOPLINE_CHROMIUM may name the program")
def test_a_browser_follows_the_links_of_a_site_and_notes_each_page_once(tmp_path: Path) -> None:
    with target(tmp_path) as site, Shop() as shop:
        out = ended(start("example_browser", site, tmp_path, f"{shop.url}/list/0", "9", HOPLINE_CHROMIUM=CHROMIUM or ""))
        assert out[-1] == "9 pages", out
        notes = {one["url"].removeprefix(shop.url): one for one in lines(tmp_path / "site.jsonl")}
        assert len(notes) == 9 == len(lines(tmp_path / "site.jsonl"))
        assert notes["/list/0"]["title"] == "List 0" and len(notes["/list/0"]["links"]) == shop.PRODUCTS + 1
        assert notes["/product/0"]["title"] == "Product 0" and site.sandbox.charges() <= 3
