"""The modules for crawlers without their packages."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(("name", "said"), [("scrapy", "Scrapy 2.13 or later"), ("crawlee", "Crawlee 1.11 or later"), ("playwright", "Playwright")])
def test_a_missing_package_is_one_clear_sentence(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, f"hopline.{name}", raising=False)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as caught:
        importlib.import_module(f"hopline.{name}")
    assert str(caught.value) == f'hopline.{name} needs {said}: pip install "hopline[{name}]"'
