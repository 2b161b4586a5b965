"""The commands of what a store keeps: sessions, doubts, settle, resume, forget, store."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import hopline
from hopline._postgres import script
from hopline._postgres_link import is_database, shown

from . import database
from .accounts import Client, Shell, folder, is_doubt, is_settled, name_of, others_said
from .arguments import Parser, seconds
from .buying import add_cap, add_yes, readable
from .screen import Line, Loud, Outcome, Stop, Table


def add_sessions(parser: Parser) -> None:
    """Declares `hopline sessions`."""
    parser.add_argument("--all", action="store_true", help="sessions that are over, too")
    parser.add_argument("--read", action="store_true", help="reads each session from the service now")


def sessions(shell: Shell) -> Outcome:
    """Lists the sessions that the store keeps, with the status that was read last."""
    agent = shell.agent()
    entries = list(agent.walk_saved())
    found, rows = [], []
    for one in entries:
        if one.session_id is None or is_doubt(one) or not (one.holds == "session" or shell.asked.all):
            continue
        status = _read(agent, one.session_id) if shell.asked.read else one.status
        members = {"intent": one.intent, "session_id": one.session_id, "status": status, "whose": one.whose, "operation": one.operation}
        found.append({**members, "record": one.record})
        rows.append((one.intent or "-", one.session_id, status or "-", _WHOSE[one.whose]))
    lines: list[Line] = [Table(("INTENT", "SESSION", "STATUS", "USED BY"), rows)] if rows else ["the store keeps no session"]
    doubts = [one for one in entries if is_doubt(one)]
    if doubts:
        lines += [Loud(_count(len(doubts), "operation is in doubt", "operations are in doubt")), Loud(f"  {shell.type('doubts')}", "bold cyan")]
    return Outcome({"sessions": found, "in_doubt": len(doubts)}, lines)


_WHOSE = {"mine": "this command", "other": "a program", "free": "nobody"}


def _read(agent: hopline.AgentClient, session_id: str) -> str:
    try:
        return str(agent.get_session(session_id=session_id).status)
    except hopline.Refused as error:
        if error.code not in ("SESSION_NOT_FOUND", "SESSION_EXPIRED"):
            raise
        return str(error.code)


def doubts(shell: Shell) -> Outcome:
    """Shows what is in doubt, and what to type next. Nothing is sent. The exit code is 3 if there is anything."""
    entries = [one for client in shell.clients() for one in client.walk_saved()]
    found = [one for one in entries if is_doubt(one)]
    unusable = [one for one in entries if one.holds == "refused"]
    lines: list[Line] = [Loud(_count(len(found), "operation is in doubt", "operations are in doubt"))] if found else ["nothing is in doubt"]
    for one in found:
        lines += ["", *_doubt(shell, one)]
    if unusable:
        lines += ["", *_unusable(shell, unusable)]
    named = [one for one in entries if is_settled(one)]
    if named:
        lines += ["", "settled by hand, and not confirmed by the service; if that was wrong, settle it again:"]
        lines += [Loud(f"  {shell.type('settle', name_of(one))}", "bold cyan") for one in named]
    if unseen := shell.unseen():
        lines += ["", Loud(others_said(unseen))]
    members = [{**_known(one), "next": _next(shell, one)} for one in found]
    refused = [{"record": one.record, "intent": one.intent, "reason": one.reason} for one in unusable]
    known = {"doubts": members, "unusable": refused, "settled": [_known(one) for one in named], "not_looked_at": unseen}
    return Outcome(known, lines, code=3 if found or unusable or unseen else 0)


def _known(one: hopline.Saved) -> dict[str, Any]:
    known = {"intent": one.intent, "record": one.record, "operation": one.operation, "holds": one.holds, "whose": one.whose}
    known |= {"session_id": one.session_id, "order_no": one.order_no}
    return known | {"in_doubt_since": one.in_doubt_since, "settle_from": one.settle_from}


def _next(shell: Shell, one: hopline.Saved) -> list[str]:
    name = name_of(one)
    if one.whose == "other":
        return []
    if one.holds == "in_doubt_for_good":
        return [shell.type("settle", name)]
    return [shell.type("resume", name), shell.type("settle", name)]


def _doubt(shell: Shell, one: hopline.Saved) -> Sequence[Line]:
    name = name_of(one)
    what = f"  {one.operation}" + (f" of {one.session_id}" if one.session_id else "") + (f" of {one.order_no}" if one.order_no else "")
    since = "" if one.in_doubt_since is None else f", in doubt since {_when(one.in_doubt_since)} ({_age(one.in_doubt_since)} ago)"
    lines: list[Line] = [Loud(one.intent or "(without an intent)", "bold"), what + since]
    if one.whose == "other":
        return [*lines, "  a program that runs is at work on it: let it end, or stop it, and look again"]
    if one.holds == "in_doubt_for_good":
        lines.append("  it can't be sent again, so look it up and say what became of it:")
    else:
        lines.append("  send it again with the same key, which never buys twice:")
        lines.append(Loud(f"    {shell.type('resume', name)}", "bold cyan"))
        lines.append("  or look it up and say what became of it:")
    lines.append(Loud(f"    {shell.type('settle', name)}", "bold cyan"))
    if one.settle_from is not None and one.settle_from > datetime.now(UTC):
        lines.append(f"  a lost request may still arrive until {_when(one.settle_from)}")
    return lines


def _unusable(shell: Shell, unusable: Sequence[hopline.Saved]) -> Sequence[Line]:
    lines: list[Line] = [Loud(_count(len(unusable), "record can't be used, and may be a doubt", "records can't be used, and may be doubts"))]
    reasons = Counter(one.reason or "unknown" for one in unusable)
    for reason, count in reasons.items():
        lines += [f"  {count}: {line}" if at == 0 else f"     {line}" for at, line in enumerate(_REASONS.get(reason, (reason.replace("_", " "),)))]
    return lines


_REASONS = {
    "other_account": ("of another API key, login or base URL: is yours the programs' own?", "after a change of the key or the URL: --same-account"),
    "backend": ("refused by a backend of your own", "starting the intent again sends it once more"),
}


def add_settle(parser: Parser) -> None:
    """Declares `hopline settle`."""
    parser.add_argument("name", metavar="NAME", help="the intent or the record, as `hopline doubts` shows it")
    decided = parser.add_mutually_exclusive_group()
    decided.add_argument("--became", metavar="ID", help="it happened, and this is the session, recharge, order or sub-user")
    decided.add_argument("--happened", action="store_true", help="it happened, and nobody knows the id: its intent never buys again")
    decided.add_argument("--not-happened", action="store_true", help="it did not happen: its intent may buy again")
    parser.add_argument("--early", action="store_true", help="with --not-happened: does not wait for an hour after the last send")
    add_yes(parser)


def settle(shell: Shell) -> Outcome:
    """Looks a doubt up at the service, asks what became of it, and settles it. Without a person to ask it only looks it up."""
    asked = shell.asked
    if asked.became is not None and asked.became.lower() in _NO_IDS:
        raise Stop(f"`{asked.became}` is no id", [shell.type("settle", asked.name)], code=2)
    client, one = shell.find(asked.name, lambda one: is_doubt(one) or is_settled(one), "doubt")
    became, happened, is_known = asked.became, asked.became is not None or asked.happened, True
    if not happened and not asked.not_happened:
        if is_doubt(one):
            candidates, lines, is_complete = _look_up(shell, client, one)
        else:
            candidates, is_complete = [], False
            lines = [f"`{name_of(one)}` is not in doubt" + (f": it stands for {one.session_id}" if one.session_id else "") + "; a person who settled it wrongly settles it again"]
        choice = ""
        if shell.screen.can_ask():
            if is_doubt(one) and one.holds != "in_doubt_for_good":
                lines += ["it can be sent again, which finds out by itself and never buys twice:", Loud(f"  {shell.type('resume', name_of(one))}", "bold cyan")]
            shell.screen.show(Outcome(None, lines))
            lines = []
            ids = {each["became"] or each["item"].get("reference") for each in candidates}
            question = "Which is it? its id, `none` if it did not happen, or Enter to leave it in doubt:"
            choice = shell.screen.answer(question)
            while choice.lower() in _NO_IDS - {"none"}:
                shell.screen.say(f"`{choice}` is no id")
                choice = shell.screen.answer(question)
            is_known = choice in ids or choice.lower() == "none"
        if not choice:
            commands = [*_decisions(shell, one)]
            lines = [*lines, f"it stays {'in doubt' if is_doubt(one) else 'so'}; once you know, type one of these:", *(Loud(f"  {each}", "bold cyan") for each in commands)]
            return Outcome({**_known(one), "settled": False, "candidates": candidates, "complete": is_complete, "next": commands}, lines, code=3)
        became, happened = (None, False) if choice.lower() == "none" else (choice, True)
    return _decide(shell, client, one, happened, became, is_known)


_NO_IDS = {"y", "yes", "n", "no", "none"}


def _look_up(shell: Shell, client: Client, one: hopline.Saved) -> tuple[list[dict[str, Any]], list[Line], bool]:
    shell.screen.say(f"looking {one.operation} `{name_of(one)}` up: only reads are sent, and nothing is decided")
    found = client.reconcile(one.record)
    owned = {each.record: name_of(each) for each in client.walk_saved()}
    sessions = {each.session_id: name_of(each) for each in client.walk_saved() if each.session_id is not None}
    candidates: list[dict[str, Any]] = []
    lines: list[Line] = []
    for each in found.candidates:
        item = readable(each.item)
        known = each.became or item.get("reference")
        belongs = owned.get(each.record or "") or sessions.get(str(known))
        candidates.append({"read": each.read, "became": each.became, "belongs_to": belongs, "matched": list(each.matched), "item": item})
        head = f"  {known or each.read}" + (f", which agrees in {', '.join(each.matched)}" if each.matched else "")
        head += f", but belongs to `{belongs}`" if belongs else ""
        lines += [Loud(head, "bold"), "    " + ", ".join(f"{name} {value}" for name, value in _once(item) if value != known)]
    lines.insert(0, "the service shows:" if one.in_doubt_since is None else f"in doubt since {_when(one.in_doubt_since)}; the service shows:")
    if not found.complete:
        lines.append("not everything was read, so there may be more")
    return candidates, lines, found.complete


def _once(item: dict[str, Any]) -> list[tuple[str, Any]]:
    """The members of an item. Services that write one member in two spellings show it once."""
    return [(name, item[name]) for name in {name.replace("_", "").lower(): name for name in reversed(item)}.values()][::-1]


def _decisions(shell: Shell, one: hopline.Saved) -> Sequence[str]:
    name = name_of(one)
    again = [] if one.holds == "in_doubt_for_good" or not is_doubt(one) else [shell.type("resume", name)]
    is_late = one.settle_from is None or one.settle_from <= datetime.now(UTC)
    return [*again, shell.type("settle", name, "--became", "…"), *([shell.type("settle", name, "--not-happened")] if is_late else [])]


def _decide(shell: Shell, client: Client, one: hopline.Saved, happened: bool, became: str | None, is_known: bool) -> Outcome:
    asked, name = shell.asked, name_of(one)
    if happened:
        what = "as happened" if became is None else f"as having become {became}"
        steps = [] if is_known else [f"{became} is not among what the service shows"]
        steps += [f"settles {one.operation} `{name}` {what}: its intent never buys again"]
        if became is not None and one.operation == "create_session":
            steps[-1] += ', except where a program says if_ended="buy" and that session is over'
    else:
        if not asked.early and one.settle_from is not None and one.settle_from > datetime.now(UTC):
            until = _when(one.settle_from)
            sentence = f"a lost request of `{name}` may still arrive until {until}, so it can't be settled as not happened before; --early does not wait"
            raise Stop(sentence, [shell.type("settle", name)], code=3)
        steps = [f"settles {one.operation} `{name}` as not happened: its record is deleted, and its intent may buy again"]
    shell.screen.confirm(steps, is_agreed=asked.yes and is_known)
    settled = client.settle(one.record, happened=happened, became=became, early=asked.early)
    if not settled:
        said = f"`{name}` was not settled: it was settled already, or it is of another account"
        known = {**_known(one), "settled": False, "happened": happened, "became": became}
        return Outcome({**known, "candidates": [], "complete": None, "next": []}, [said], code=1)
    commands = [shell.type("resume", name)] if happened and became is not None else []
    if not happened and one.operation == "create_session" and one.intent is not None and not one.intent.startswith("pool/"):
        commands = [shell.type("buy", "…", "--intent", one.intent, "--max-unit-price", "…")]
    said = f"`{name}` is settled"
    lines: list[Line] = [f"{said}; next:" if commands else said, *(Loud(f"  {command}", "bold cyan") for command in commands)]
    known = {**_known(one), "settled": settled, "happened": happened, "became": became}
    return Outcome({**known, "candidates": [], "complete": None, "next": commands}, lines, effect=f"`{name}` is settled{'' if became is None else f' as {became}'}")


def add_resume(parser: Parser) -> None:
    """Declares `hopline resume`."""
    parser.add_argument("name", metavar="NAME", help="the intent, the record, the session or the order")
    parser.add_argument("--deadline", type=seconds, default=300, metavar="SECONDS", help="how long to wait for a session or an order; default: 300")
    add_cap(parser)
    add_yes(parser)


def resume(shell: Shell) -> Outcome:
    """Goes on with what a name stands for: sends a doubt again with the same key, or waits for a session or an order."""
    asked = shell.asked
    client, one = shell.find(asked.name, lambda one: True, "record")
    if is_doubt(one) and one.holds != "in_doubt_for_good":
        step = f"sends {one.operation} `{name_of(one)}` again with the same key: it is done now if it was not done before, and never twice"
        shell.screen.confirm([step], is_agreed=asked.yes)
    with shell.screen.progress(f"resuming {one.operation} `{name_of(one)}`") as shell.tell:
        found = client.resume(one.record, deadline=asked.deadline, keep=True)
    known: dict[str, Any] = {"intent": one.intent, "operation": one.operation, "session_id": None, "order_no": None, "status": None, "phase": found.phase}
    if isinstance(found, hopline.OrderReply):
        known |= {"order_no": found.order_no, "status": found.order.status}
        line = f"order {found.order_no} is {found.phase}: `{found.order.status}`"
        commands = [shell.type("orders")]
    elif isinstance(found, hopline.SessionReply):
        known |= {"session_id": found.session_id, "status": found.session.status}
        line = f"session {found.session_id} is {found.phase}: `{found.session.status}`"
        name = one.intent or found.session_id
        commands = [shell.type("proxy", name), shell.type("end", name)] if found.phase == "ready" else []
    else:
        line, commands = f"{one.operation} `{name_of(one)}` was accepted", []
    code = 0 if known["phase"] in (None, "ready") else 4
    return Outcome({**known, "next": commands}, [line, *(Loud(f"  {command}", "bold cyan") for command in commands)], code, f"{line} (`{name_of(one)}`)")


def add_forget(parser: Parser) -> None:
    """Declares `hopline forget`."""
    parser.add_argument("name", metavar="NAME", help="the intent, the record, the session or the order")
    parser.add_argument("--living", action="store_true", help="with --yes: also a session that nobody has ended")
    add_yes(parser)


def forget(shell: Shell) -> Outcome:
    """Forgets what is over, so that its intent may be used again. A doubt is settled instead."""
    client, one = shell.find(shell.asked.name, lambda one: not is_doubt(one), "record that can be forgotten")
    step = f"forgets {one.operation} `{name_of(one)}`: its intent may buy again"
    if one.holds == "session":
        step += f"; session {one.session_id} is not ended, and nothing remembers it any more"
    if one.holds == "session" and shell.asked.yes and not shell.asked.living:
        name = name_of(one)
        raise Stop(f"session {one.session_id} may still live, and --yes alone forgets none: end or read it first, or add --living", [shell.type("end", name), shell.type("resume", name)], code=2)
    shell.screen.confirm([step], is_agreed=shell.asked.yes)
    gone = client.forget(one.record)
    said = f"`{name_of(one)}` is forgotten" if gone else f"`{name_of(one)}` was not forgotten: it is of another account, or gone already"
    return Outcome({"intent": one.intent, "record": one.record, "forgotten": gone}, [said], 0 if gone else 1, said if gone else "")


def add_init(parser: Parser) -> None:
    """Declares `hopline store init`."""
    parser.add_argument("--worker", metavar="ROLE", help="of a database: the role that programs log in as, which gets the right to call the functions")
    parser.add_argument("--print", action="store_true", help="of a database: prints the SQL and does nothing")


def store_init(shell: Shell) -> Outcome:
    """Makes the folder of a store, or the tables of a database. Nothing is sent to the service."""
    path = shell.asked.store
    if shell.asked.print:
        text = script(worker=shell.asked.worker)
        return Outcome({"sql": text}, text.splitlines())
    if path is None:
        raise Stop("--store FOLDER or HOPLINE_STORE is needed", code=2)
    if is_database(path):
        is_new = database.init(path, shell.asked.worker)
        lines: list[Line] = [f"the tables in `{shown(path)}` are {'made' if is_new else 'up to date'}"]
        if shell.asked.worker is None:
            lines.append("let programs log in as a role of their own: --worker ROLE gives it the rights that it needs")
        return Outcome({"store": shown(path), "made": is_new}, lines)
    is_new = not os.path.isdir(path)
    if is_new:
        try:
            os.makedirs(path, mode=0o700)
        except OSError as error:
            raise Stop(f"`{path}` can't be made: {error.strerror}") from None
    store = folder(path)
    try:
        # Any call opens the folder.
        store.list("00", after=None, open=True)
    except OSError as error:
        raise Stop(str(error)) from None
    finally:
        store.close()
    return Outcome({"store": path, "made": is_new}, [f"`{path}` is {'made' if is_new else 'a store already'}"])


def store_check(shell: Shell) -> Outcome:
    """Opens the store and reads all its records; of a database it also says what server it is. Nothing is sent to the service. The exit code
    is 3 if there is a doubt, or a record that can't be read, and else 1 if a database does not keep what it confirms."""
    entries = [one for client in shell.clients() for one in client.walk_saved()]
    counts = Counter(one.holds for one in entries)
    found = sum(is_doubt(one) for one in entries)
    unusable = [one for one in entries if one.holds == "refused"]
    path = shell.asked.store
    seen = database.look(path) if is_database(path) else None
    name = path if seen is None else shown(path)
    lines: list[Line] = [f"`{name}` can be read: {_count(len(entries), 'record', 'records')}"]
    lines += [f"  {count:>6} {holds.replace('_', ' ')}" for holds, count in sorted(counts.items())]
    if found:
        lines += [Loud(_count(found, "operation is in doubt", "operations are in doubt")), Loud(f"  {shell.type('doubts')}", "bold cyan")]
    if unusable:
        lines += _unusable(shell, unusable)
    if unseen := shell.unseen():
        lines.append(Loud(others_said(unseen)))
    reasons = Counter(one.reason or "unknown" for one in unusable)
    members = {"store": name, "records": dict(sorted(counts.items())), "in_doubt": found, "unusable": dict(reasons)}
    members["not_looked_at"] = unseen
    if seen is not None:
        members["database"] = seen.members
        lines += seen.lines
    is_unsafe = seen is not None and not seen.is_safe
    return Outcome(members, lines, code=3 if found or unusable or unseen else 1 if is_unsafe else 0)


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _when(at: datetime) -> str:
    day = "" if at.date() == datetime.now(UTC).date() else f"{at:%Y-%m-%d} "
    return f"{day}{at:%H:%M} UTC"


def _age(at: datetime) -> str:
    minutes = max(0, int((datetime.now(UTC) - at).total_seconds() // 60))
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1440} days"
