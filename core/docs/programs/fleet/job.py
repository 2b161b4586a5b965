"""The work of a fleet, for any engine: a page is read through one of six sessions, which all workers on all machines share."""

import os
import threading
from decimal import Decimal
from urllib.parse import urlsplit

import hopline
import requests

_lock = threading.Lock()
_open: tuple[hopline.AgentClient, hopline.Pool] | None = None


def pool() -> hopline.Pool:
    """The pool of this process. Its first task opens it, since no client outlives a fork."""
    global _open
    with _lock:
        if _open is None:
            store = hopline.PostgresStore(os.environ["HOPLINE_STORE"])
            agent = hopline.AgentClient(store=store, daily_cap_usd=Decimal(os.environ["HOPLINE_DAILY_CAP_USD"]))
            try:
                _open = agent, agent.open_pool(
                    "prices",
                    size=6,
                    session_type="dynamic",
                    product_no="dynamic-world",
                    quantity=Decimal("0.5"),
                    protocol="http",
                    use_with="requests",
                )
            except BaseException:
                agent.close()
                raise
        return _open[1]


def fetch(url: str) -> str:
    """Reads a page. The engine does again what fails."""
    with pool().acquire(target=urlsplit(url).hostname, timeout=60) as lease:
        http: requests.Session = lease.data.setdefault("http", requests.Session())
        try:
            response = http.get(url, **lease.proxy.for_requests(), timeout=20)
        except requests.RequestException as error:
            lease.observe(error)
            raise
        lease.observe(response)
        response.raise_for_status()
        return response.text


def close(grace: float = 10) -> None:
    """Waits for leases that are out, and leaves the sessions to the other workers at once. Without it they wait for a minute."""
    global _open
    with _lock:
        was, _open = _open, None
    if was is not None:
        agent, its_pool = was
        its_pool.close(grace)
        agent.close()
