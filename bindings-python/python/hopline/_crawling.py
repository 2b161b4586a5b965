"""The reasons for which a crawl can't go on."""

from __future__ import annotations

from typing import get_args

from ._told import PoolHoldReason, Unavailable

STUCK = frozenset({*get_args(PoolHoldReason), "in_doubt", "over", "left"})
"""The reasons of a pool without any session that works: other requests would not get one, either. Any other reason is about one target, or
about a moment.
"""
AGAIN = 1.0
"""The seconds after which a request asks again that was told at once that it would get no session in its time."""


def is_stuck(why: Unavailable) -> bool:
    """Returns true if no request of the crawl can get a session, rather than this one at this moment."""
    return why.reason in STUCK
