"""What every test may ask for. The package is the installed wheel, never the source tree."""

import pathlib
from collections.abc import Iterator

import hopline
import pytest
from sandbox import Sandbox

ROOT = pathlib.Path(__file__).resolve().parents[3]
if ROOT / "bindings-python" in pathlib.Path(hopline.__file__).resolve().parents:
    raise RuntimeError("the tests are to run against the installed package; use `cargo xtask test python`")

BUY = {"session_type": "dynamic", "product_no": "dynamic-world"}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    running = Sandbox("--seed", "7", "--provisioning-ms", "50-150", "--session-limit", "1000", "--rate-limit", "1000000", "--balance", "100000")
    yield running
    running.close()
