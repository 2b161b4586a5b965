"""The requirements of Hopline, as data, through the built package."""

import os
from pathlib import Path

import pytest
import vector_format
import vectors
from conftest import ROOT
from vector_format import Json

FOLDER = Path(os.environ.get("HOPLINE_VECTORS", ROOT / "tests" / "vectors"))
CASES = vector_format.cases(FOLDER)


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_a_case_goes_as_it_is_written(case: Json) -> None:
    vectors.run(case)


def test_all_cases_were_read(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{len(CASES)} vectors")
    assert len({name for name, _ in CASES}) == len(CASES)


@pytest.mark.parametrize(
    "step",
    [
        {"sned": 1},
        {"put": "r1", "anwser": "done"},
        {"put": "r1", "answer": "claimed"},
        {"put": "r1", "delete": "r1"},
        {"resume": "r1"},
    ],
)
def test_what_the_runner_does_not_understand_it_refuses(step: Json) -> None:
    with pytest.raises(vector_format.Failure):
        vector_format.read_step(step)


ASK = {"ask": "session_event", "given": {"facts": {"status": 200}}}


def test_an_answer_that_is_another_does_not_pass() -> None:
    vectors.run({"name": "n", "script": [{**ASK, "ok": {"status": 200}}]})
    for wrong in ({}, {"ok": {}}, {"ok": {"status": 201}}, {"error": {}}, {"given": {}, "ok": {}}):
        with pytest.raises(vector_format.Failure):
            vectors.run({"name": "n", "script": [{**ASK, **wrong}]})
