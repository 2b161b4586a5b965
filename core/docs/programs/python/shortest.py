import sys
from decimal import Decimal

import hopline
import requests

url = sys.argv[1]
with hopline.AgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=20) as agent:
    cheapest = hopline.cheapest(type="dynamic", max_unit_price=5)
    with agent.open_session(product=cheapest, quantity=Decimal("0.5"), intent="prices", if_ended="buy", use_with="requests") as session:
        page = requests.get(url, **session.proxy.for_requests(), timeout=30)
        print(page.status_code, "for", session.charged_usd, "USD")
