"""Fetches the URLs of its command line with curl_cffi, as Chrome would, through at most three sessions."""

import sys

import hopline
from curl_cffi.requests.exceptions import RequestException
from hopline.curl_cffi import PoolSession

with (
    hopline.AgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=40) as agent,
    agent.open_pool("shop", size=3, session_type="dynamic", product_no="dynamic-world", protocol="http", use_with="curl") as pool,
    PoolSession(pool, impersonate="chrome", timeout=20) as http,
):
    for url in sys.argv[1:]:
        try:
            print(url, http.get(url).status_code)
        except RequestException as error:  # also where the pool has no session
            print(url, "failed:", error)
