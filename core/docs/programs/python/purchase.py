"""Buys a session for no more than it was quoted, uses it, changes its exit when a site blocks it, and ends it. Killed at any moment
and started again, it goes on with the same session: it resumes first, and chooses a product only if there is nothing to resume."""

import datetime
from decimal import Decimal

import hopline

# The intent is your own name for this purchase. With the date in it, tomorrow's run buys a session of its own.
intent = f"prices-{datetime.date.today()}"

with hopline.AgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=50) as agent:
    try:
        opened = agent.resume(intent=intent)
    except hopline.Ended as ended:
        raise SystemExit(f"today's session {ended.session_id} is over; nothing was bought") from None
    if opened is None:
        offered = [product for product in agent.walk_products(type="dynamic") if product.available]
        quote = hopline.quote(min(offered, key=lambda product: product.price), Decimal("0.5"))
        print(quote.quantity, quote.unit, "of", quote.product_no, "cost", quote.total, quote.currency)
        opened = agent.open_session(
            session_type="dynamic",
            product_no=quote.product_no,
            quantity=quote.quantity,
            protocol="http",
            max_unit_price=quote.unit_price,
            intent=intent,
            use_with="requests",
        )
    if not isinstance(opened, hopline.OpenSession):
        raise SystemExit("the intent stands for something else")

    with opened as session:  # leaving the block ends the session; open_session(…, keep=True) keeps it
        proxy = session.proxy  # for your own requests: requests.get(url, **proxy.for_requests())
        print(session.session_id, "is", session.phase, "at", proxy.host, proxy.port, proxy.password)
        # Tell Hopline what your requests meet: a status, the response, or the exception. Then do as it advises.
        advice = session.observe(403)
        if advice is not None and advice.verdict == "rotate" and advice.reason is not None:
            session.rotate(advice.reason)  # session.proxy is the new one, and session.generation has grown
        print("health", agent.get_session_health(session_id=session.session_id).raw)
