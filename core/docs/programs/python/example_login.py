"""Keeps a login at a site over days, with one static address: python program.py https://shop.example

To be started every hour, such as by cron: each run looks at the account's page, and logs in only where the site asks for that. The session
and the cookies are those of the run before, whatever became of it, and the session is renewed two days before its end."""

import datetime
import os
import sys
from decimal import Decimal
from http.cookiejar import LWPCookieJar
from pathlib import Path

import hopline
import requests

EARLY = datetime.timedelta(days=2)
COST = Decimal(10)
"""The cost of the purchase and of a renewal, in USD, which no price of the list tells of a static session."""
COOKIES = Path("cookies.txt")


def opened(agent: hopline.AgentClient) -> hopline.OpenSession:
    """The session: bought by the first run, and the same one in each run after that."""
    return agent.open_session(
        session_type="static",
        product_no="static-us",
        duration=1,
        protocol="http",
        intent="shop-login",
        expected_charge_usd=COST,
        use_with="requests",
    )


def renew(agent: hopline.AgentClient, session_id: str, what: str) -> None:
    """Renews the session. Under the intent each term is paid once, also if this run is killed and another one comes."""
    agent.renew_session(session_id=session_id, duration=1, expected_charge_usd=COST, intent=f"shop-login {what}")
    print("renewed", what)


def save(cookies: LWPCookieJar) -> None:
    """Saves the cookies. A run that is killed here leaves those of before."""
    cookies.save("cookies.new", ignore_discard=True)  # its owner alone may read it
    Path("cookies.new").replace(COOKIES)


site = sys.argv[1]
cookies = LWPCookieJar(COOKIES)
if COOKIES.exists():
    cookies.load(ignore_discard=True)
with hopline.AgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=20) as agent, requests.Session() as http:
    for resumed in agent.resume_all():  # the purchase or renewal of a run that was killed
        if isinstance(resumed, hopline.HoplineError):
            print("not resumed:", resumed)
    try:
        session = opened(agent)
    except hopline.Ended as ended:  # no run came in its last days
        renew(agent, str(ended.session_id), f"on {datetime.date.today()}")
        session = opened(agent)
    ends = str(session.raw.get("expires_at"))  # the contract does not document where a session says its end: your service may do so elsewhere
    if datetime.datetime.fromisoformat(ends) - datetime.datetime.now(datetime.UTC) < EARLY:
        renew(agent, session.session_id, f"at {ends}")
    http.cookies = cookies  # type: ignore[assignment]
    http.proxies = session.proxy.for_requests()["proxies"]
    account = http.get(f"{site}/account", timeout=20)
    if account.status_code == 401:
        login = {"user": os.environ["SHOP_USER"], "password": os.environ["SHOP_PASSWORD"]}
        http.post(f"{site}/login", data=login, timeout=20).raise_for_status()
        save(cookies)
        print("logged in")
        account = http.get(f"{site}/account", timeout=20)
    account.raise_for_status()
    save(cookies)  # a site may have changed them
    print(account.text)
