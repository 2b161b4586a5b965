"""The package as it is installed: every entry of the table, typed and documented, and no file beside."""

import importlib.metadata
import inspect
import re
from pathlib import Path

import hopline
import pytest
from conftest import ROOT


def entries(api: str) -> list[str]:
    """The names of the table, read from the table itself."""
    text = "".join(path.read_text() for path in sorted((ROOT / "core/src/contract" / api).glob("*.rs")))
    return re.findall(r"^    (\w+): (?:Get|Post|Put|Patch|Delete) \"", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("client", "api", "waiting"),
    [
        (hopline.AgentClient, "agent", ["open_session", "wait_session"]),
        (hopline.AsyncAgentClient, "agent", ["open_session", "wait_session"]),
        (hopline.ResellerClient, "reseller", ["place_order", "wait_order"]),
        (hopline.AsyncResellerClient, "reseller", ["place_order", "wait_order"]),
    ],
)
def test_every_endpoint_is_a_documented_and_typed_method(client: type, api: str, waiting: list[str]) -> None:
    names = entries(api)
    assert len(names) == {"agent": 19, "reseller": 30}[api]
    for name in [*names, *waiting]:
        method = getattr(client, name)
        signature = inspect.signature(method)
        assert method.__doc__ and signature.return_annotation is not inspect.Signature.empty, name
        for parameter in list(signature.parameters.values())[1:]:
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY and f"{parameter.name}: " in method.__doc__, f"{name}({parameter.name})"
        waits = inspect.iscoroutinefunction(method)
        assert waits == (client.__name__.startswith("Async") and name != "open_session"), name


@pytest.mark.parametrize(
    ("blocking", "awaited"), [(hopline.AgentClient, hopline.AsyncAgentClient), (hopline.ResellerClient, hopline.AsyncResellerClient)]
)
def test_the_clients_of_an_api_take_and_offer_the_same(blocking: type, awaited: type) -> None:
    def offered(client: type, other: str) -> dict[str, list[str]]:
        names = {name for name in dir(client) if not name.startswith("_")} - {other, "token"}
        return {name: list(inspect.signature(getattr(client, name)).parameters) for name in names}

    assert offered(blocking, "to_async") == offered(awaited, "to_sync")
    assert list(inspect.signature(blocking).parameters) == list(inspect.signature(awaited).parameters)


def test_the_wheel_needs_nothing_and_says_that_it_is_typed() -> None:
    required = importlib.metadata.requires("hopline") or []
    assert all("extra ==" in one for one in required)
    assert (Path(hopline.__file__).parent / "py.typed").exists()


def test_the_public_names_are_there() -> None:
    assert len(set(hopline.__all__)) == len(hopline.__all__)
    for name in hopline.__all__:
        assert hasattr(hopline, name), name
