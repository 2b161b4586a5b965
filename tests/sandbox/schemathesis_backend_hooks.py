"""Logs schemathesis in at the backend, again and again as its tokens end."""

import os

import requests
import schemathesis


@schemathesis.auth(refresh_interval=600)
class Login:
    def get(self, case, context):
        body = {"username": os.environ["HOPLINE_USERNAME"], "password": os.environ["HOPLINE_PASSWORD"]}
        answer = requests.post(f"{os.environ['HOPLINE_BACKEND_URL']}/auth/login", json=body, timeout=10)
        answer.raise_for_status()
        return answer.json()["data"]["token"]

    def set(self, case, data, context):
        case.headers = case.headers or {}
        case.headers["Authorization"] = f"Bearer {data}"
