"""How long a target asks to wait: the core reads it, whatever HTTP client the response is of."""

import time
from email.utils import formatdate
from typing import Any

import pytest
from hopline._seen import wait_ms


class Answer:
    status_code = 429

    def __init__(self, **headers: Any) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        ("120", 120_000, 120_000),
        ("299.997", 299_997, 299_998),
        ("120, 60", 120_000, 120_000),
        (["7", "9"], 9000, 9000),
        (b"12s", 12_000, 12_000),
        ("2030.5", 2_030_500, 2_030_500),
        (30, 30_000, 30_000),
    ],
)
def test_a_target_is_waited_for_as_long_as_it_says(said: Any, least: int, most: int) -> None:
    waits = wait_ms(Answer(Retry_After=said))
    assert waits is not None and least <= waits <= most


# The dates are made within the test: as parameters they would name it, and each worker would collect another name.
@pytest.mark.parametrize("is_gmt", [True, False])
def test_a_target_is_waited_for_until_a_date(is_gmt: bool) -> None:
    waits = wait_ms(Answer(Retry_After=formatdate(time.time() + 300, usegmt=is_gmt)))
    assert waits is not None and 200_000 <= waits <= 301_000


@pytest.mark.parametrize("said", ["-5", "nan", "inf", "", "soon", "\ud800", None])
def test_what_is_no_time_asks_for_nothing(said: Any) -> None:
    assert wait_ms(Answer(Retry_After=said)) is None


def test_what_has_no_headers_asks_for_nothing() -> None:
    for seen in (429, "captcha", ValueError(), Answer(), type("Odd", (), {"headers": 7})()):
        assert wait_ms(seen) is None


def test_a_date_is_read_against_that_of_the_answer() -> None:
    assert wait_ms(Answer(Retry_After="Sun, 15 Jun 2025 16:00:10 GMT", Date="Sun, 15 Jun 2025 16:00:00 GMT")) == 10_000
