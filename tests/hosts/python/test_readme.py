"""The programs of the README, as they are printed, each in an empty folder."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import ROOT
from sandbox import Sandbox

README = (ROOT / "bindings-python" / "README.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_readme_has_programs() -> None:
    assert len(PROGRAMS) == 4


@contextmanager
def payer(sandbox: Sandbox) -> Iterator[None]:
    """Somebody who pays each order to top up, once it is there."""
    over = threading.Event()

    def pay() -> None:
        while not over.wait(0.1):
            for order in sandbox.state()["orders"]:
                if order["status"] == "pending":
                    sandbox.control("pay", {"order_id": order["order_id"]})

    paying = threading.Thread(target=pay)
    paying.start()
    yield
    over.set()
    paying.join()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_readme_runs_as_printed(program: str, sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program)
    account = {"HOPLINE_BASE_URL": sandbox.ready["agent_url"], "HOPLINE_API_KEY": sandbox.ready["api_key"]}
    account |= {"HOPLINE_BACKEND_URL": sandbox.ready["backend_url"]}
    account |= {"HOPLINE_USERNAME": sandbox.ready["username"], "HOPLINE_PASSWORD": sandbox.ready["password"]}
    run = [sys.executable, "program.py"]
    with payer(sandbox):
        ran = subprocess.run(run, cwd=tmp_path, env=os.environ | account, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0 and ran.stdout and not ran.stderr, ran.stderr
    if "create_recharge" in program:
        assert "is ready at" in ran.stdout and "the top-up is ready" in ran.stdout and "[redacted]" in ran.stdout
    if "ResellerClient" in program:
        assert all(told in ran.stdout for told in ("is ready\na proxy at 127.", "purchase", "renewal"))
        assert [sandbox.times(f"{what}_static_order") for what in ("create", "renew", "cancel")] == [1, 1, 1]
    assert all(session["status"] == "terminated" for session in sandbox.state()["sessions"])
    typed = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "program.py"]
    checked = subprocess.run(typed, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert checked.returncode == 0, checked.stdout
