"""Crawlers over a pool beside the same with a plain list of proxies, and the loopback port beside other relays: `cargo xtask bench crawlers` and
`cargo xtask bench relays` run it and write its lines into tables.

bench.py crawlers|relays [--once]

With `--once` each work is done once, to see that it comes to its result; no plot is written then, and what is missing of Node is left out.
"""

import asyncio
import json
import logging
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "hosts" / "python"))

import hopline  # noqa: E402
import relays  # noqa: E402
from clients import NAMES, Crawl, Place, listed, pooled  # noqa: E402
from sandbox import Sandbox  # noqa: E402

ONCE = "--once" in sys.argv
ROUNDS, PAGES = (1, 12) if ONCE else (6, 150)
BLOCK_AFTER, BLOCKED_PAGES = 10, 60


@asynccontextmanager
async def place() -> AsyncIterator[tuple[Sandbox, Place]]:
    """A service with its site, and a folder."""
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox("--seed", "7", "--provisioning-ms", "0", "--session-limit", "1000", "--rate-limit", "1000000", "--balance", "1000", "--tls", folder)
        try:
            yield sandbox, Place(sandbox.account, sandbox.ready["tls_ca"], Path(folder) / "records")
        finally:
            sandbox.close()


async def speeds(name: str) -> tuple[list[float], list[float]]:
    """Seconds a page over the pool and over the list, round by round, where nobody is blocked."""
    times: tuple[list[float], list[float]] = ([], [])
    async with place() as (sandbox, where), pooled(name, where) as over_pool, listed(name, where) as over_list:
        for number in range(ROUNDS):
            for kind, (crawl, own) in enumerate(zip((over_pool, over_list), times, strict=True)):
                urls = [f"{sandbox.ready['tls_target']}r{number}/{kind}/{page}" for page in range(PAGES)]
                got, seconds = await crawl(urls)
                assert got == PAGES, (name, got)
                # The first round connects, and warms up.
                if number > 0 or ONCE:
                    own.append(seconds / PAGES)
    return times


async def yields(name: str, crawler: Any) -> tuple[int, Decimal]:
    """The pages that came from a site that blocks each exit after ten, and USD of traffic for a thousand pages."""
    async with place() as (sandbox, where):
        async with hopline.AsyncAgentClient(**where.account) as agent:
            [price] = [one.price for one in (await agent.list_products()).items if one.product_no == "dynamic-world"]
        sandbox.control("target", {"block_after": BLOCK_AFTER})
        async with crawler(name, where) as crawl:
            crawl: Crawl
            got, _ = await crawl([f"{sandbox.ready['tls_target']}p{page}" for page in range(BLOCKED_PAGES)])
        return got, price * sandbox.state()["traffic_bytes"] / 10**9 / got * 1000


async def crawlers() -> dict[str, Any]:
    """The table of crawlers."""
    rows, plotted = [], []
    for name in NAMES:
        own, other = await speeds(name)
        got, usd = await yields(name, pooled)
        got_by_list, usd_by_list = await yields(name, listed)
        assert got == BLOCKED_PAGES, (name, got)
        plotted.append((name, 1 / median(own), 1 / median(other)))
        _, by_pool, by_list = plotted[-1]
        cells = [f"{by_pool:.0f}", f"{by_list:.0f}", ratio(own, other), str(got), str(got_by_list), f"{usd:.4f}", f"{usd_by_list:.4f}"]
        rows.append([name, *cells])
        print(rows[-1], file=sys.stderr)
    if not ONCE:
        plot(plotted)
    columns = ["Crawler", "Pages a second", "with a list", "Time over the list's (quartiles)"]
    columns += [f"Pages of {BLOCKED_PAGES} where exits are blocked", "with a list", "USD a thousand of these", "with a list"]
    return {"versions": versions("httpx", "requests", "curl_cffi", "aiohttp", "Scrapy", "crawlee"), "columns": columns, "rows": rows}


def ratio(own: list[float], other: list[float]) -> str:
    """The median of the ratios within a round, with the quartiles."""
    ratios = [one / two for one, two in zip(own, other, strict=True)]
    low, _, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return f"{median(ratios):.2f} ({low:.2f} to {high:.2f})"


def plot(measured: list[tuple[str, float, float]]) -> None:
    """Pages a second as bars."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "hopline", "svg.fonttype": "none", "font.family": "sans-serif"})
    from matplotlib import pyplot

    names, by_pool, by_list = zip(*measured, strict=True)
    figure, axes = pyplot.subplots(figsize=(8, 4))
    places = range(len(names))
    axes.barh([place + 0.2 for place in places], by_list, 0.4, label="plain list of proxies", color="#b0b8c0")
    axes.barh([place - 0.2 for place in places], by_pool, 0.4, label="Hopline", color="#2f6f9f")
    axes.set_yticks(list(places), [name.replace(", ", ",\n") for name in names])
    axes.invert_yaxis()
    axes.set_xlabel("pages a second, three sessions, six requests at a time, https")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(HERE / "pages.svg", metadata={"Date": None})


async def throughput() -> dict[str, Any]:
    """The table of relays."""
    async with place() as (_, where), hopline.AsyncAgentClient(**where.account) as agent:
        session = await agent.open_session(session_type="dynamic", product_no="dynamic-world", quantity=100, protocol="http", credentials=True, keep=True)
        assert session.proxy.full_url
        measured = relays.measure(session.proxy.full_url.reveal(), ROUNDS, once=ONCE)
    (_, own), *others = measured.items()
    rows = []
    for name, other in others:
        for kind, (work, show) in enumerate(relays.WORKS):
            ours, theirs = own[kind], other[kind]
            rows.append([f"{work}, beside {name}", show(median(ours)), show(median(theirs)), ratio(ours, theirs)])
    return {"versions": versions() | relays.versions(), "columns": ["Work", "Hopline", "Beside it", "Time over the other's (quartiles)"], "rows": rows}


def versions(*names: str) -> dict[str, str]:
    """What was measured."""
    return {name: version(name) for name in ("hopline", *names)} | {"Python": sys.version.split()[0]}


if __name__ == "__main__":
    logging.disable()  # what Crawlee says of each blocked page
    print(json.dumps(asyncio.run({"crawlers": crawlers, "relays": throughput}[sys.argv[1]]())))
