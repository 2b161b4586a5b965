"""Fetches the URLs of its command line through at most five sessions, which any number of these programs in this folder share."""

import sys
from decimal import Decimal

import hopline
import requests

with (
    hopline.AgentClient(store=hopline.FolderStore("hopline-records")) as agent,
    agent.open_pool(
        "shop",
        size=5,
        session_type="dynamic",
        product_no="dynamic-world",
        quantity=Decimal("0.5"),
        protocol="http",
        use_with="requests",
        daily_cap_usd=40,  # a pool buys by itself, so it needs a cap, or its client does
    ) as pool,
):
    for url in sys.argv[1:]:
        for _ in range(3):
            with pool.acquire(target="shop.example") as lease:
                # One HTTP client for each exit, whose cookies and connections the next lease of it uses again.
                http: requests.Session = lease.data.setdefault("http", requests.Session())
                try:
                    response = http.get(url, **lease.proxy.for_requests(), timeout=20)
                except requests.RequestException as error:
                    print(url, "failed;", lease.observe(error))
                    continue  # the page was not read, whatever the advice is
                advice = lease.observe(response)
                print(url, response.status_code, advice)
            if advice != "give_back":
                break
    status = pool.status()
    print(status.ready, "sessions are ready", status.hold)
