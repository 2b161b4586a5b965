import sys
from decimal import Decimal

import hopline
import requests

with hopline.AgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=20) as agent:
    with agent.open_session(
        session_type="dynamic", product_no="dynamic-world", quantity=Decimal("0.5"), protocol="http",
        intent="prices", if_ended="buy", use_with="requests",
    ) as session:  # leaving the block ends the session
        response = requests.get(sys.argv[1], **session.proxy.for_requests(), timeout=20)
        print(session.session_id, "fetched", response.status_code)
