"""The command line: shows the pools in a store, and pauses, resumes or drains them.

    hopline pool list
    hopline pool status shop
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from time import monotonic, sleep
from typing import Any

import hopline
from hopline._hopline import VERSION
from hopline._options import Environment

_COMMANDS = {
    "list": "shows the pools that the store keeps",
    "status": "shows a pool, and what its slots hold",
    "pause": "no program buys for the pool until it is resumed; what there is is lent",
    "resume": "all programs buy for the pool again, also where it had stopped for a reason that somebody had to see to",
    "drain": "all programs close the pool, and its dynamic sessions are terminated",
}
_PROGRAMS_END = 20
"""Seconds within which programs terminate what they have: 4 until they hear of the drain, 10 for their leases, and what a request takes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command. Returns the exit code: 1 after an error, 2 after a wrong usage."""
    parser, pools = _parsers()
    asked = parser.parse_args(arguments)
    needed = {"--store FOLDER or HOPLINE_STORE": asked.store, "--base-url URL or HOPLINE_BASE_URL": asked.base_url}
    needed["HOPLINE_API_KEY, the API key that the pool's programs use,"] = _said("HOPLINE_API_KEY")
    if (missing := next((name for name, value in needed.items() if not value), None)) is not None:
        pools.error(f"{missing} is needed")
    try:
        # a client would make the folder
        if not os.path.isdir(asked.store):
            raise SystemExit(f"hopline: there is no folder `{asked.store}`")
        options: dict[str, Any] = {} if asked.account is None else {"account": asked.account}
        store = hopline.FolderStore(asked.store)
        with hopline.AgentClient(store=store, base_url=asked.base_url, same_account=asked.same_account, **options) as agent:
            found, lines = _run(agent, asked)
    except hopline.HoplineError as error:
        raise SystemExit("; ".join([f"hopline: {error}", *getattr(error, "__notes__", ())])) from None
    except KeyboardInterrupt:
        raise SystemExit("hopline: interrupted") from None
    print(json.dumps(found, default=_plain, indent=2) if asked.json else "\n".join(lines))
    return 0


def _said(variable: str) -> str | None:
    """A value of the environment, where a file or a shell may have left a line break behind it."""
    said: str | None = Environment().text("", None, variable)
    return said


def _parsers() -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    parser = argparse.ArgumentParser(prog="hopline", description="Shows the pools that a store keeps, and pauses, resumes or drains them.")
    parser.add_argument("--version", action="version", version=VERSION)
    pools = parser.add_subparsers(required=True, metavar="pool").add_parser("pool", help="pools that programs share through a store")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--store", metavar="FOLDER", default=_said("HOPLINE_STORE"), help="the store's folder; default: HOPLINE_STORE")
    common.add_argument("--base-url", metavar="URL", default=_said("HOPLINE_BASE_URL"), help="the address of the API; default: HOPLINE_BASE_URL")
    common.add_argument("--account", metavar="NAME", help="the `account` that the programs name, if they do")
    common.add_argument("--same-account", action="store_true", help="what was stored under another key or base URL belongs to this account")
    common.add_argument("--json", action="store_true", help="prints JSON, for programs")
    commands = pools.add_subparsers(required=True, dest="command", metavar="command")
    for name, what in _COMMANDS.items():
        command = commands.add_parser(name, parents=[common], help=what, description=what)
        if name != "list":
            command.add_argument("name", metavar="NAME", help="the pool's name")
        if name == "drain":
            command.add_argument("--static", action="store_true", help="terminates static sessions, too, which are not refunded")
    return parser, pools


def _run(agent: hopline.AgentClient, asked: argparse.Namespace) -> tuple[Any, Iterable[str]]:
    """The result of a command, for programs and for people."""
    if asked.command == "list":
        known = agent.list_pools()
        return known, _table(known)
    name: str = asked.name
    with agent.join_pool(name) as pool:
        if asked.command == "status":
            status = pool.status(everywhere=True)
            slots = list(_slots(agent, name))
            mine, others, free = _mine(status), status.with_others, status.free_in_store
            found = {"name": name, "size": status.size, "mine": mine, "others": others, "free": free, "in_doubt": status.in_doubt}
            found |= {"empty": status.empty, "hold": status.hold, "slots": slots}
            return found, _status(name, status, slots)
        if asked.command == "drain":
            return _drain(agent, pool, asked.static)
        if asked.command == "pause":
            pool.pause()
            said = "is paused: nothing is bought for it until `hopline pool resume`"
        else:
            pool.resume()
            said = "buys again: its programs hear of it within 4 seconds, or before they buy"
    return {"name": name, "done": asked.command}, [f"{name} {said}"]


def _slots(agent: hopline.AgentClient, name: str) -> Iterable[hopline.Saved]:
    """What the store keeps of the slots of a pool."""
    return (one for one in agent.saved() if (one.intent or "").startswith(f"pool/{name}/"))


def _drain(agent: hopline.AgentClient, pool: hopline.Pool, include_static: bool) -> tuple[Any, Iterable[str]]:
    """Drains a pool, and waits until its programs have terminated what they have."""

    def living() -> set[str]:
        return {one.session_id for one in _slots(agent, pool.name) if one.holds == "session" and one.session_id}

    before = living()
    pool.drain(everywhere=True, include_static=include_static)
    until = monotonic() + _PROGRAMS_END
    while (left := living()) and monotonic() < until:
        before |= left
        sleep(0.5)
    ended = len(before - left)
    said = f"{pool.name} is drained and stays paused: {ended} session{'' if ended == 1 else 's'} terminated"
    if left:
        static = "" if include_static else ", and static ones with --static"
        said += f", {len(left)} still living: {', '.join(sorted(left))}; drain it again once no program has them{static}"
    return {"name": pool.name, "done": "drain", "ended": ended, "living": sorted(left)}, [said]


def _table(pools: Sequence[hopline.KnownPool]) -> Iterable[str]:
    if not pools:
        return ["the store keeps no pool"]
    rows: list[tuple[str, ...]] = [("POOL", "SIZE", "MINE", "OTHERS", "FREE", "IN DOUBT", "HOLD")]
    for one in pools:
        rows.append((one.name, *map(str, (one.size, one.mine, one.with_others, one.free_in_store, one.in_doubt)), _hold(one.hold)))
    wide = max(len(row[0]) for row in rows)
    return [f"{row[0]:{wide}}  {row[1]:>7}  {row[2]:>7}  {row[3]:>7}  {row[4]:>7}  {row[5]:>8}  {row[6]}".rstrip() for row in rows]


def _mine(status: hopline.PoolStatus) -> int:
    return status.ready + status.leased + status.creating + status.changing + status.resting


def _status(name: str, status: hopline.PoolStatus, slots: Iterable[hopline.Saved]) -> Iterable[str]:
    counts = f"{_mine(status)} mine / {status.with_others} others / {status.free_in_store} free"
    yield f"{name}: {status.size} slots: {counts}, {status.in_doubt} in doubt, {status.empty} empty"
    yield f"buys: {'yes' if status.hold is None else f'no, {_hold(status.hold)}'}"
    for one in slots:
        session = "" if one.session_id is None else f"  {one.session_id} {one.status or ''}"
        # A person who settles a doubt needs its record.
        record = f"  record {one.record}" if one.holds.startswith("in_doubt") else ""
        yield f"{one.intent}  {one.holds.replace('_', ' ')}{session}{record}".rstrip()


def _hold(hold: hopline.PoolHold | None) -> str:
    if hold is None:
        return ""
    then = f"; tries again at {hold.retry_at:%H:%M:%S} UTC" if hold.retry_at is not None else ""
    needs = "" if hold.needs == "nobody" else f"; needs a {hold.needs}"
    return f"{hold.reason.replace('_', ' ')}: {hold.why}{then}{needs}"


def _plain(value: Any) -> Any:
    """A value that JSON can't hold."""
    members = getattr(value, "_members", None)
    return str(value) if members is None else members()


if __name__ == "__main__":
    sys.exit(main())
