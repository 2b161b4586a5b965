"""The fixtures of all tests. The package is the installed wheel, never the source tree."""

import pathlib
import signal
from collections.abc import Iterator

import hopline
import pytest
from sandbox import Sandbox

ROOT = pathlib.Path(__file__).resolve().parents[3]
if ROOT / "bindings-python" in pathlib.Path(hopline.__file__).resolve().parents:
    raise RuntimeError("the tests are to run against the installed package; use `cargo xtask test python`")

# A shell that runs something in the background has it ignore interrupts, which tests send to themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)

BUY = {"session_type": "dynamic", "product_no": "dynamic-world"}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    running = Sandbox("--seed", "7", "--provisioning-ms", "50-150", "--session-limit", "1000", "--rate-limit", "1000000", "--balance", "100000")
    yield running
    running.close()
