"""Logs schemathesis in at the backend, and makes every other sound request one that the backend can fulfil.

The document says neither which products there are nor who one's sub-users are, so hardly an order would be placed.
"""

import itertools
import os

import requests
import schemathesis

_turns = itertools.count()
_DYNAMIC = {"poolId": "dynamic-us", "trafficAmount": 0.01, "unitPrice": 0, "totalAmount": 0}
_STATIC = {"poolId": "static-us", "unitPrice": 0, "totalAmount": 0, "ipCount": 1, "duration": 1, "cycleTimes": 1}
_PLACES = ("regionCode", "countryCode", "cityCode", "assignedIp", "assignedIpList", "projectId")
_BODIES = {
    "POST /open/app/order/create/v2": _DYNAMIC,
    "POST /open/app/static/order/create-standard/v2": _STATIC,
    "POST /open/app/static/order/renew": {"duration": 1, "cycleTimes": 1},
    "POST /business/dynamic-proxy/extract": {"productNo": "dynamic-us", "proxyType": 104},
    "POST /usdt/create-order": {"amount": 10},
}
_user = {}
_orders = {}


@schemathesis.auth(refresh_interval=600)
class Login:
    def get(self, case, context):
        token = _post("/auth/login", {"username": os.environ["HOPLINE_USERNAME"], "password": os.environ["HOPLINE_PASSWORD"]})["token"]
        if not _user:
            user = {"username": "buyer", "password": "not-a-secret", "balance": 1000000}
            _user["id"] = _post("/open/app/user/v2", user, token)["id"]
        return token

    def set(self, case, data, context):
        case.headers = case.headers or {}
        case.headers["Authorization"] = f"Bearer {data}"


@schemathesis.hook
def before_call(context, case, kwargs):
    is_sound = case.meta is not None and case.meta.generation.mode.is_positive
    if not is_sound or next(_turns) % 2:
        return
    label, body = case.operation.label, case.body
    if label in _BODIES and isinstance(body, dict):
        kept = {name: value for name, value in body.items() if name not in _PLACES + ("instances", "order_id", "orderNo")}
        case.body = {**kept, **_BODIES[label]}
        if "poolId" in body:
            case.body["userId"] = _user["id"]
        if label.endswith("/renew"):
            case.body["orderNo"] = _orders.get("static", "none")
    path = case.path_parameters or {}
    # Its status, its login and its life are left alone, for it is to go on buying.
    if "user_id" in path and label.startswith(("GET", "POST")):
        path["user_id"] = _user["id"]
    if "order_no" in path:
        path["order_no"] = _orders.get("static" if "static" in label else "dynamic", "none")


@schemathesis.hook
def after_call(context, case, response):
    kinds = {"POST /open/app/order/create/v2": "dynamic", "POST /open/app/static/order/create-standard/v2": "static"}
    kind = kinds.get(case.operation.label)
    if kind and response.request.method == "POST" and response.status_code == 200:
        _orders[kind] = response.json()["data"]["order_no"]


def _post(path, body, token=""):
    headers = {"Authorization": f"Bearer {token}"}
    answer = requests.post(os.environ["HOPLINE_BACKEND_URL"] + path, json=body, headers=headers, timeout=10)
    answer.raise_for_status()
    return answer.json()["data"]
