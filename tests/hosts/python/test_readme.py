"""The programs of the README, as they are printed, each in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from sandbox import Sandbox

README = (ROOT / "bindings-python" / "README.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_readme_has_programs() -> None:
    assert len(PROGRAMS) == 3


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_readme_runs_as_printed(program: str, sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program)
    account = {"HOPLINE_BASE_URL": sandbox.ready["agent_url"], "HOPLINE_API_KEY": sandbox.ready["api_key"]}
    ran = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=os.environ | account, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0 and ran.stdout and not ran.stderr, ran.stderr
    assert all(session["status"] == "terminated" for session in sandbox.state()["sessions"])
    typed = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "program.py"]
    checked = subprocess.run(typed, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0, checked.stdout
