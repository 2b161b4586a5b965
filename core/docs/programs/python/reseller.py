"""Makes a sub-user with money, orders a static proxy for it, reads it, renews it and gives it back. Killed at any moment and
started again, it makes nothing twice: it resumes the order, and chooses a product only if there is none."""

import hopline

# HOPLINE_BACKEND_URL, HOPLINE_USERNAME and HOPLINE_PASSWORD, or base_url=…, username=… and password=…
with hopline.ResellerClient(store=hopline.FolderStore("hopline-records")) as reseller:
    try:
        user = reseller.create_user(username="shop-17", password="a long password", intent="user-17")
        if user.id is None:
            raise SystemExit("the service did not say which number it has")
        reseller.adjust_sub_user_balance(user_id=user.id, amount=50, remark="for May", intent="money-17")

        over = ["failed", "cancelled"]  # statuses of your service that an order ends with
        placed = reseller.resume(intent="order-17", ends=over)
        if placed is None:
            offered = reseller.query_products(proxy_type=103, standard_country_code="US").items
            product = next(one for one in offered if one.stock and not hopline.needs_project_id(one))
            print(product.product_id, "costs", product.price, "a", product.unit)
            placed = reseller.place_order(
                pool_id=product.product_id or "",
                user_id=user.id,
                unit_price=0,  # the service's own price
                total_amount=0,
                ip_count=1,
                duration=1,
                unit="month",
                cycle_times=1,
                intent="order-17",
                ends=over,
            )
        if not isinstance(placed, hopline.OrderReply):
            raise SystemExit("the intent stands for something else")
        print("order", placed.order_no, "is", placed.phase)

        if placed.phase == "ready":
            # The service does not document what an item looks like; these names are those of the sandbox.
            for shown in (instance for item in placed.order.items for instance in item["instances"]):
                username, password = hopline.Secret(shown["username"]), hopline.Secret(shown["password"])
                proxy = hopline.Proxy(host=shown["ip"], port=shown["http_port"], protocol="http", username=username, password=password)
                print("a proxy at", proxy.host, proxy.port)  # requests.get(url, **proxy.for_requests())

            reseller.renew_static_order(order_no=placed.order_no, duration=1, unit="month", cycle_times=1, intent="renewal-17")
            for entry in reseller.walk_consumption(order_no=placed.order_no):
                print(entry["type"], entry["amount"])
            reseller.cancel_static_order(order_no=placed.order_no, intent="cancel-17")
    except hopline.HoplineError as error:
        if error.effect == "unknown" and error.record is not None:
            for candidate in reseller.reconcile(error.record).candidates:  # what it may have become, passwords included
                print(candidate.read, "agrees in", candidate.matched, "with", candidate.item)
        raise SystemExit(str(error)) from None  # a sentence that says what to do next
