"""The programs of the page on ports, as they are printed there, and a browser that is started by its command line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import hopline
import pytest
from conftest import BUY, ROOT
from crawling import CHROMIUM, needs_chromium
from ports import PROGRAM, Site, needs_curl, needs_wget
from sandbox import Sandbox

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the sandbox is for Unix")
PAGE = (ROOT / "core/docs/loopback-port.md").read_text()
CHROMEDRIVER = os.environ.get("HOPLINE_CHROMEDRIVER") or shutil.which("chromedriver")


def account(sandbox: Sandbox) -> dict[str, str]:
    return {"HOPLINE_BASE_URL": sandbox.ready["agent_url"], "HOPLINE_API_KEY": sandbox.ready["api_key"]}


@needs_wget
def test_the_program_with_wget_fetches_a_page_through_a_socks5_session(sandbox: Sandbox, tmp_path: Path) -> None:
    program = ROOT / "core/docs/programs/python/port_wget.py"
    assert 'programs/python/port_wget.py"' in PAGE
    site = sandbox.ready["target_url"]
    # wget passes by a proxy for names of `no_proxy`.
    environment = {name: value for name, value in os.environ.items() if name.lower() != "no_proxy"} | account(sandbox)
    done = subprocess.run([sys.executable, str(program), "http://127.0.0.1:1/", site], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0 and done.stderr == "", done
    first, second = done.stdout.splitlines()
    assert first.startswith("http://127.0.0.1:1/ failed: wget ended with ") and second == f"{site} is in the file page"
    [session] = sandbox.state()["sessions"]
    assert json.loads((tmp_path / "page").read_text())["address"] == session["exit"] and sandbox.charges() == 1


@needs_curl
def test_the_commands_of_the_page_do_what_they_say(sandbox: Sandbox, tmp_path: Path) -> None:
    export, first, *others = (line.split("  #")[0].strip() for line in PAGE.split("```sh\n")[1].split("```")[0].splitlines())
    name, folder = export.removeprefix("export ").split("=")
    environment = {**os.environ, **account(sandbox), name: str(tmp_path / folder), "NO_PROXY": "", "no_proxy": ""}
    subprocess.run([PROGRAM, "store", "init"], env=environment, check=True, stdout=subprocess.DEVNULL)
    words = first.replace("127.0.0.1:8118", "127.0.0.1:0").split()
    port = subprocess.Popen([PROGRAM, *words[1:]], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert port.stdout is not None
        place = port.stdout.readline().removeprefix("http://").strip()
        assert place.startswith("127.0.0.1:"), place
        said = []
        for line in others:
            line = line.replace("127.0.0.1:8118", place).replace("https://example.com", sandbox.ready["target_url"])
            done = subprocess.run(["bash", "-c", f"{line} --silent --max-time 60"], env=environment, capture_output=True, text=True, timeout=90)
            assert done.returncode == 0, (line, done)
            said.append(json.loads(done.stdout))
        page, named, reported, status = said
        assert page["address"] and named["address"] and reported["advice"] == "give_back" and status["connections"] == 2
        assert reported["session_id"] in [one["session_id"] for one in status["exits"]]
        port.terminate()
        assert port.wait(60) == 0
    finally:
        port.kill()
        port.communicate()


@needs_chromium
def test_chromium_shows_pages_through_a_socks5_session(tmp_path: Path) -> None:
    quiet = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--ignore-certificate-errors", "--proxy-bypass-list=<-loopback>")
    (tmp_path / "tls").mkdir()
    site = Site(tmp_path / "tls")
    try:
        with hopline.AgentClient(**site.sandbox.account) as agent, agent.open_session(**BUY, intent="page", credentials=True) as session:
            assert session.proxy.protocol == "socks5"
            [exit] = [one["exit"] for one in site.sandbox.state()["sessions"]]
            with session.proxy.on_loopback() as port:
                for url in (site.plain, site.secure):
                    command = [str(CHROMIUM), *quiet, f"--user-data-dir={tmp_path / 'profile'}", f"--proxy-server={port}", "--dump-dom", url]
                    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
                    assert exit in done.stdout, done
    finally:
        site.sandbox.close()


@needs_chromium
@pytest.mark.skipif(not CHROMEDRIVER and os.environ.get("CI") != "true", reason="chromedriver is not here; HOPLINE_CHROMEDRIVER may name the program")
def test_the_program_with_selenium_shows_a_page_through_a_socks5_session(sandbox: Sandbox, tmp_path: Path) -> None:
    chromium = tmp_path / "chromium"
    chromium.write_text(f"#!/bin/sh\nexec {CHROMIUM} --no-sandbox --no-first-run --disable-background-networking \"$@\"\n")
    chromium.chmod(0o755)
    program, site = ROOT / "core/docs/programs/python/port_selenium.py", sandbox.ready["target_url"]
    environment = os.environ | account(sandbox) | {"HOPLINE_CHROMIUM": str(chromium), "SE_CHROMEDRIVER": str(CHROMEDRIVER), "no_proxy": "*"}
    done = subprocess.run([sys.executable, str(program), site], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and done.stderr == "", done
    [session] = sandbox.state()["sessions"]
    assert done.stdout.startswith(site) and json.loads(done.stdout.removeprefix(site))["address"] == session["exit"] and sandbox.charges() == 1
