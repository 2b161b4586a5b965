"""The package as it is installed: every entry of the table, typed and documented, and no file beside."""

import importlib.metadata
import inspect
from pathlib import Path

import hopline
import pytest
from conftest import ROOT


def entries() -> list[str]:
    """The names of the table, read from the table itself."""
    import re

    text = "".join(path.read_text() for path in sorted((ROOT / "core/src/contract/agent").glob("*.rs")))
    return re.findall(r"^    (\w+): (?:Get|Post|Put|Patch|Delete) \"", text, re.MULTILINE)


@pytest.mark.parametrize("client", [hopline.AgentClient, hopline.AsyncAgentClient])
def test_every_endpoint_is_a_documented_and_typed_method(client: type) -> None:
    names = entries()
    assert len(names) >= 8
    for name in [*names, "open_session", "wait_session"]:
        method = getattr(client, name)
        signature = inspect.signature(method)
        assert method.__doc__ and signature.return_annotation is not inspect.Signature.empty, name
        for parameter in list(signature.parameters.values())[1:]:
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY and f"{parameter.name}: " in method.__doc__, f"{name}({parameter.name})"
        waits = inspect.iscoroutinefunction(method)
        assert waits == (client is hopline.AsyncAgentClient and name != "open_session"), name


def test_the_wheel_needs_nothing_and_says_that_it_is_typed() -> None:
    required = importlib.metadata.requires("hopline") or []
    assert all("extra ==" in one for one in required)
    assert (Path(hopline.__file__).parent / "py.typed").exists()


def test_the_public_names_are_there() -> None:
    assert len(set(hopline.__all__)) == len(hopline.__all__)
    for name in hopline.__all__:
        assert hasattr(hopline, name), name
