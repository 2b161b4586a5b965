"""Fetches the URLs of its command line with requests, in four threads, through at most three sessions."""

import sys
from concurrent.futures import ThreadPoolExecutor

import hopline
import requests
from hopline.requests import PoolAdapter

with (
    hopline.AgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=40) as agent,
    agent.open_pool("shop", size=3, session_type="dynamic", product_no="dynamic-world", protocol="http", use_with="requests") as pool,
    requests.Session() as http,
):
    for prefix in ("https://", "http://"):
        http.mount(prefix, PoolAdapter(pool))

    def fetch(url: str) -> str:
        try:
            return f"{url} {http.get(url, timeout=20).status_code}"
        except requests.ConnectionError as error:  # also where the pool has no session
            return f"{url} failed: {error}"

    with ThreadPoolExecutor(4) as threads:
        print(*threads.map(fetch, sys.argv[1:]), sep="\n")
