"""The pages of a port: its status for people and for programs, and the reports of clients."""

from __future__ import annotations

import asyncio
import json
import re
from asyncio import StreamReader
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from .._told import Invalid
from ._calls import check_page
from ._http import Head
from ._words import Refusal, response

if TYPE_CHECKING:
    from ._server import Port

_WHERE = "the pages of this port are /, /status.json and, by POST, /report; to fetch a site, use the port as a proxy"
_LONGEST = 4096


async def page(port: Port, head: Head, login: tuple[str, str] | None, reader: StreamReader, *, has_token: bool) -> bytes:
    """Answers a request for a page of the port."""
    check_page(head, has_token)
    method, target, _ = head.first
    url = urlsplit(target)
    wanted = {"/": "GET", "/status.json": "GET", "/report": "POST"}.get(url.path)
    if wanted is None:
        raise Refusal(404, _WHERE)
    if method != wanted:
        raise Refusal(405, f"{url.path} is for {wanted}")
    if url.path == "/report":
        length = head.body
        if length is None or length > _LONGEST:
            raise Refusal(400, "a report is short, and has a Content-Length")
        given = parse_qs(f"{url.query}&{(await reader.readexactly(length)).decode('utf-8', 'replace')}")
        return _json(await _reported(port, {name: values[-1] for name, values in given.items()}))
    status = await _status(port)
    return _json(status) if url.path == "/status.json" else _html(status)


async def _status(port: Port) -> dict[str, Any]:
    return {**await port.exits.status(), "open_connections": sum(one.exit is not None for one in port.connections), **port.counts.told()}


async def _reported(port: Port, given: dict[str, str]) -> dict[str, Any]:
    """Takes the report of a client about what a port can't see: an HTTP status, or a word such as `captcha`."""
    key, seen = given.get("key"), given.get("seen", "")
    one = port.exits.of_key(key)
    if one is None:
        raise Refusal(404, f"no connection of the key `{key}` was there within the last seconds: the report comes too late, or its key is another one")
    try:
        advice = one.observe(int(seen) if re.fullmatch("[0-9]{3}", seen) else seen)  # type: ignore[arg-type]
    except Invalid as error:
        raise Refusal(400, str(error)) from None
    if advice is None:
        raise Refusal(400, "the port of a session observes nothing; say it by `session.observe`")
    if advice != "keep":
        port.exits.give_up(one)
        if one.over_since is not None and (ending := port.cut(one)):
            # A client that has the answer finds its old connection closed.
            await asyncio.wait(ending)
    return {"advice": advice, "session_id": one.session_id, "generation": one.generation}


def _json(found: dict[str, Any]) -> bytes:
    return response(200, f"{json.dumps(found)}\n".encode(), {"Content-Type": "application/json"}, "OK")


def _html(status: dict[str, Any]) -> bytes:
    exits = status.pop("exits")
    hold = status.pop("hold", None)
    if hold is not None:
        status["buys"] = f"no, {hold['reason']}: {hold['why']}" + (f"; again at {hold['retry_at']}" if hold["retry_at"] else "")
    rows = "".join(f"<tr><th>{escape(name.replace('_', ' '))}</th><td>{escape(str(value))}</td></tr>" for name, value in status.items())
    titles = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in (exits[0] if exits else ()))
    lines = "".join("<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in one.values()) + "</tr>" for one in exits)
    style = "body{font:14px system-ui;margin:2em}th{text-align:left;padding-right:2em}td{padding-right:2em}"
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="5"><title>hopline port</title><style>{style}</style>'
        f"<h1>hopline port</h1><table>{rows}</table><h2>Exits</h2><table><tr>{titles}</tr>{lines}</table></html>\n"
    )
    return response(200, text.encode(), {"Content-Type": "text/html; charset=utf-8"}, "OK")
