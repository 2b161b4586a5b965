"""Fetches the URLs of its command line with httpx, through at most three sessions. With httpx2 it is the same."""

import sys

import hopline
import httpx
from hopline.httpx import PoolTransport

with (
    hopline.AgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=40) as agent,
    agent.open_pool("shop", size=3, session_type="dynamic", product_no="dynamic-world", protocol="http", use_with="httpx") as pool,
    httpx.Client(transport=PoolTransport(pool), timeout=20) as http,
):
    for url in sys.argv[1:]:
        try:
            print(url, http.get(url).status_code)
        except httpx.TransportError as error:  # also where the pool has no session
            print(url, "failed:", error)
