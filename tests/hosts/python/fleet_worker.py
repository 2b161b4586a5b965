"""The changes of the tests in a worker of a fleet: claims are short, and each request says which process it comes from."""

import os

import requests
from hopline import _postgres

TTL = float(os.environ.get("HOPLINE_FLEET_TTL", "12"))
"""Seconds that claims outlive their owner's last sign of life. The other times are those parts of it that they are of a minute."""

for name, part in {"_TTL": 1, "_MARGIN": 12, "_VOUCHED": 3, "_RENEW": 4}.items():
    setattr(_postgres, name, TTL / part)
requests.utils.default_user_agent = lambda name="": f"worker-{os.getpid()}"
