"""Fetches the URLs of its command line with wget, which can't log in to a SOCKS5 proxy, through one session of a pool."""

import subprocess
import sys

import hopline

with (
    hopline.AgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=20) as agent,
    agent.open_pool("shop", size=1, session_type="dynamic", product_no="dynamic-world") as pool,
    pool.acquire() as lease,
    lease.proxy.on_loopback() as port,  # such as http://127.0.0.1:41234
):
    for url in sys.argv[1:]:
        ways = ["-e", "use_proxy=yes", "-e", f"http_proxy={port}", "-e", f"https_proxy={port}"]
        done = subprocess.run(["wget", "-q", "-O", "page", *ways, url])
        print(url, "is in the file page" if done.returncode == 0 else f"failed: wget ended with {done.returncode}")
