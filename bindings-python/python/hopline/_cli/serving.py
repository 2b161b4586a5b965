"""A port over a pool, from the command line, until Ctrl-C or SIGTERM. Imported by that command alone, and asyncio with it."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from decimal import Decimal
from typing import Any

import hopline
from hopline._port._exits import PoolExits
from hopline._port._server import Port

from .accounts import Shell
from .screen import Outcome, Stop


def serve(shell: Shell, agent: hopline.AgentClient, product: hopline.Product, host: str, number: int) -> dict[str, Any]:
    """Serves until it is ended, and returns what it has counted."""
    _allow_descriptors()
    return asyncio.run(_serve(shell, agent.to_async(), product, host, number))


async def _serve(shell: Shell, agent: hopline.AsyncAgentClient, product: hopline.Product, host: str, number: int) -> dict[str, Any]:
    asked = shell.asked
    request = {name: getattr(asked, name) for name in ("size", "quantity", "duration", "protocol", "max_unit_price", "leases_per_session")}
    session_type: Any = product.type
    where = {"country_code": asked.country, "city_code": asked.city, "project_id": asked.project}
    opening = agent.open_pool(asked.pool, session_type=session_type, product_no=product.product_no, daily_cap_usd=Decimal(asked.daily_cap), **request, **where)
    async with opening as pool:
        exits = PoolExits(pool, asked.timeout, asked.key)
        port = Port(exits, asked.token)
        try:
            url = await port.open(host, number)
        except OSError as error:
            raise Stop(f"`{asked.listen}` can't be listened to: {error.strerror or error}") from None
        _end_by_signal(port)
        shell.screen.show_now(Outcome({"url": url, "pool": pool.name, "status": f"{url}/"}, [url]))
        shell.screen.say(f"the port leads through the pool {pool.name}; its status is at {url}/; Ctrl-C ends it")
        await port.serve()
        found = {**await exits.status(), **port.counts.told()}
        await pool.close(0)
        return found


def _end_by_signal(port: Port) -> None:
    """Lets Ctrl-C and SIGTERM end the port in order; the second one ends the program."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(one)
        port.over.set()

    with suppress(NotImplementedError):  # on Windows, where Ctrl-C interrupts
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, end)


def _allow_descriptors() -> None:
    """Each connection needs two descriptors, and many systems begin with 1024."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else max(soft, 65536), hard))
