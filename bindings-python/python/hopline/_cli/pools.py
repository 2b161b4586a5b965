"""The commands of pools: list, status, pause, resume, drain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from time import monotonic, sleep

import hopline

from .accounts import Shell
from .arguments import Parser
from .screen import Line, Outcome, Table

COMMANDS = {
    "list": "shows the pools that the store keeps",
    "status": "shows a pool, and what its slots hold",
    "pause": "no program buys for the pool until it is resumed; what there is is lent",
    "resume": "all programs buy for the pool again, also where it had stopped for a reason that somebody had to see to",
    "drain": "all programs close the pool, and its dynamic sessions are terminated",
}
_WHOSE = {"other": "  with a program", "free": "  free"}
_PROGRAMS_END = 20
"""Seconds within which programs terminate what they have: 4 until they hear of the drain, 10 for their leases, and what a request takes."""


def declared(command: str) -> Callable[[Parser], None]:
    """Returns the function that declares the arguments of one of them."""

    def add(parser: Parser) -> None:
        if command != "list":
            parser.add_argument("name", metavar="NAME", help="the pool's name")
        if command in ("resume", "drain"):
            parser.add_argument("--yes", action="store_true", help="agrees to what would be asked")
        if command == "drain":
            parser.add_argument("--static", action="store_true", help="terminates static sessions, too, which are not refunded")

    return add


def pool(shell: Shell) -> Outcome:
    """Runs one of the commands of pools."""
    asked, agent = shell.asked, shell.agent()
    if asked.command == "list":
        known = agent.list_pools()
        return Outcome(known, _table(known))
    name: str = asked.name
    with agent.join_pool(name) as pool:
        if asked.command == "status":
            status = pool.status(everywhere=True)
            slots = list(_slots(agent, name))
            mine, others, free = _mine(status), status.with_others, status.free_in_store
            found = {"name": name, "size": status.size, "mine": mine, "others": others, "free": free, "in_doubt": status.in_doubt}
            found |= {"empty": status.empty, "hold": status.hold, "slots": slots}
            return Outcome(found, _status(name, status, slots))
        if asked.command == "drain":
            held = [one for one in _slots(agent, name) if one.holds == "session"]
            with_programs = sum(one.whose == "other" for one in held)
            static = _count_static(agent, held)
            kinds = f"{static} static, which {'are terminated too, and not refunded' if asked.static else 'stay without --static'}" if static else "none of them static"
            step = f"closes {name} in all programs and terminates its {len(held)} sessions: {with_programs} with programs that run, {kinds}"
            shell.screen.confirm([f"{step}; unused traffic or time is lost"], is_agreed=asked.yes)
            return _drain(agent, pool, asked.static)
        if asked.command == "pause":
            pool.pause()
            said = f"is paused: nothing is bought for it until `{shell.type('pool', 'resume', name)}`"
        else:
            hold = _hold(pool.status(everywhere=True).hold)
            step = f"all programs buy for {name} again, and may spend money at once" + (f"; it had stopped: {hold}" if hold else "")
            shell.screen.confirm([step], is_agreed=asked.yes)
            pool.resume()
            said = "buys again: its programs hear of it within 4 seconds, or before they buy"
    return Outcome({"name": name, "done": asked.command}, [f"{name} {said}"], effect=f"{asked.command} of {name} is done")


def _slots(agent: hopline.AgentClient, name: str) -> Iterable[hopline.Saved]:
    """What the store keeps of the slots of a pool."""
    return (one for one in agent.saved() if (one.intent or "").startswith(f"pool/{name}/"))


def _count_static(agent: hopline.AgentClient, held: Sequence[hopline.Saved]) -> int:
    """Counts the sessions that are static. All sessions of a pool are of one type, so the first one that can be read says it."""
    for one in held:
        with suppress(hopline.HoplineError):
            return len(held) if agent.get_session(session_id=one.session_id or "").session_type == "static" else 0
    return 0


def _drain(agent: hopline.AgentClient, pool: hopline.Pool, include_static: bool) -> Outcome:
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
    return Outcome({"name": pool.name, "done": "drain", "ended": ended, "living": sorted(left)}, [said], effect=said)


def _table(pools: Sequence[hopline.KnownPool]) -> Iterable[Line]:
    if not pools:
        return ["the store keeps no pool"]
    rows = [(one.name, *map(str, (one.size, one.mine, one.with_others, one.free_in_store, one.in_doubt)), _hold(one.hold)) for one in pools]
    return [Table(("POOL", "SIZE", "MINE", "OTHERS", "FREE", "IN DOUBT", "HOLD"), rows)]


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
        yield f"{one.intent}  {one.holds.replace('_', ' ')}{session}{record}{_WHOSE.get(one.whose, '')}".rstrip()


def _hold(hold: hopline.PoolHold | None) -> str:
    if hold is None:
        return ""
    then = f"; tries again at {hold.retry_at:%H:%M:%S} UTC" if hold.retry_at is not None else ""
    needs = "" if hold.needs == "nobody" else f"; needs a {hold.needs}"
    return f"{hold.reason.replace('_', ' ')}: {hold.why}{then}{needs}"
