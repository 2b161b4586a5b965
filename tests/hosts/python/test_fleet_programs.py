"""The programs and files of the pages on fleets, as they are printed. `test_engines.py` has the long story of the two with an engine."""

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT
from engines import PROGRAMS, wait
from postgres import Server, needs_postgres, running, server
from sandbox import Sandbox

ALL = ["celery_fleet.py", "dask_fleet.py", "docker-compose.yml", "job.py", "kubernetes.yaml", "pod.py"]


def environment(server: Server, sandbox: Sandbox) -> dict[str, str]:
    account = {"HOPLINE_BASE_URL": sandbox.account["base_url"], "HOPLINE_API_KEY": sandbox.account["api_key"]}
    return {**os.environ, **account, "HOPLINE_STORE": server.dsn, "HOPLINE_DAILY_CAP_USD": "40", "PYTHONDONTWRITEBYTECODE": "1"}


def get(url: str) -> tuple[int, str]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=300) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


@contextmanager
def pod(server: Server, sandbox: Sandbox) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    process = subprocess.Popen([sys.executable, "pod.py", "0"], cwd=PROGRAMS, env=environment(server, sandbox), stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        said = process.stdout.readline().decode()
        assert said.startswith("listening on port "), said
        yield process, f"http://127.0.0.1:{said.split()[-1]}"
    finally:
        process.kill()
        process.communicate()


@needs_postgres
def test_a_pod_is_ready_while_its_pool_is_and_leaves_its_sessions_to_the_next_one(server: Server, sandbox: Sandbox) -> None:
    page = f"/page?url={sandbox.ready['target_url']}"
    for _ in range(2):
        with pod(server, sandbox) as (process, url):
            wait(lambda: get(f"{url}/ready") == (200, "ready"), "a pod that is ready")  # noqa: B023
            assert "address" in get(url + page)[1] and get(f"{url}/ready")[0] == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(300) == 0
        assert server.sql("select count(*) from hopline.names where owner is not null") == [(0,)]
    assert sandbox.charges() == 1


@needs_postgres
def test_a_pod_that_starts_without_the_database_becomes_ready_with_it(sandbox: Sandbox) -> None:
    server = Server()
    try:
        server.stop()
        with pod(server, sandbox) as (_, url):
            wait(lambda: get(f"{url}/ready")[0] == 503, "a pod that is not ready")
            server.start()
            wait(lambda: get(f"{url}/ready") == (200, "ready"), "a pod that is ready")
        assert sandbox.charges() == 0
    finally:
        server.close()


@needs_postgres
def test_the_program_of_dask_reads_all_pages(server: Server, sandbox: Sandbox, tmp_path: Path) -> None:
    for name in ("job.py", "dask_fleet.py"):
        shutil.copy(PROGRAMS / name, tmp_path)
    urls = [f"{sandbox.ready['target_url']}{number}" for number in range(20)]
    command = [sys.executable, "dask_fleet.py", *urls]
    ran = subprocess.run(command, cwd=tmp_path, env=environment(server, sandbox), capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0 and ran.stdout.count('"address"') == 20, ran.stderr
    assert 1 <= sandbox.charges() <= 6 and server.sql("select count(*) from hopline.names where owner is not null") == [(0,)]


def test_the_files_for_containers_give_the_programs_what_they_read() -> None:
    assert sorted(path.name for path in PROGRAMS.iterdir() if path.is_file()) == ALL
    wanted = set(re.findall(r'os\.environ\["([A-Z_]+)"\]', "".join((PROGRAMS / name).read_text() for name in ("job.py", "celery_fleet.py"))))
    assert wanted == {"HOPLINE_STORE", "HOPLINE_DAILY_CAP_USD", "BROKER"}
    services: dict[str, Any] = yaml.safe_load((PROGRAMS / "docker-compose.yml").read_text())["services"]
    account = {"HOPLINE_API_KEY", "HOPLINE_BASE_URL"}
    assert set(services["worker"]["environment"]) == wanted | account and services["store"]["command"] == "hopline store init"
    job, deployment = yaml.safe_load_all(kubernetes := (PROGRAMS / "kubernetes.yaml").read_text())
    assert job["spec"]["template"]["spec"]["containers"][0]["command"][:3] == ["hopline", "store", "init"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", "pod.py", str(container["ports"][0]["containerPort"])]
    assert all(name in kubernetes for name in (wanted - {"BROKER"}) | account)
    pages = "".join((ROOT / "core" / "docs" / f"{page}.md").read_text() for page in ("celery", "dask", "kubernetes"))
    assert all(f"core/docs/programs/fleet/{name}" in pages for name in ALL)
