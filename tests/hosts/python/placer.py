"""A program that places an order under an intent, with its records in a folder: to be killed and started again.

    placer.py FOLDER USER [POINT]

The program kills itself when it comes to that point: every call of the store and every send is two. The program looks up each doubt that it finds,
and settles it as a person would: the first order of this user that no record knew of before is the one.
"""

import sys

import hopline
from buyer import Points, store_of
from hopline._http import transport_for_threads

send = transport_for_threads(None)


def main(folder: str, user_id: int, fatal: int | None) -> None:
    points = Points(fatal)

    def http(request: hopline.Request) -> hopline.Response:
        points.passed()
        answer = send(request)
        points.passed()
        return answer

    with hopline.ResellerClient(http=http, store=store_of(folder, points)) as reseller:
        known = {order["order_no"] for order in reseller.walk_static_orders(user_id=user_id)} if fatal is not None else set()
        all_saved = reseller.saved()
        resumed = any(saved.holds == "order" for saved in all_saved)
        for saved in all_saved:
            if saved.holds != "in_doubt_for_good":
                continue
            with open(f"{folder}.known") as file:
                before = set(file.read().split())
            found = [one.item["order_no"] for one in reseller.reconcile(saved.record).candidates]
            mine = [number for number in found if number not in before]
            if not mine:
                reseller.settle(saved.record, happened=False, early=True)
                continue
            reseller.settle(saved.record, happened=True, became=mine[0])
            return print(reseller.resume(saved.record).order_no, "settled")
        if fatal is not None:
            with open(f"{folder}.known", "w") as file:
                file.write(" ".join(known))
        order = {"pool_id": "static-us", "unit_price": 0, "total_amount": 0, "ip_count": 1, "cycle_times": 1, "duration": 1, "unit": "month"}
        placed = reseller.place_order(**order, user_id=user_id, intent="order", deadline=0)
        print(placed.order_no, "resumed" if resumed else "placed")


if __name__ == "__main__":
    folder, user_id, *point = sys.argv[1:]
    main(folder, int(user_id), int(point[0]) if point else None)
