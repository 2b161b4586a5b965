"""The clients of a command, and what their stores hold."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import hopline
from hopline._postgres_link import is_database

from . import database, node_folder
from .arguments import alike, said, typed
from .screen import Screen, Stop

Client: TypeAlias = hopline.AgentClient | hopline.ResellerClient
FolderOfAny: TypeAlias = hopline.FolderStore | node_folder.NodeFolder
Use: TypeAlias = Literal["needed", "if_given", "none"]
"""The need of a command for the store."""
_RESELLER = ("HOPLINE_BACKEND_URL", "HOPLINE_USERNAME", "HOPLINE_PASSWORD")


class Shell(ExitStack):
    """A command that runs: its arguments, its screen and its clients, which are closed at its end."""

    def __init__(self, asked: argparse.Namespace, screen: Screen) -> None:
        super().__init__()
        self.asked, self.screen = asked, screen
        self.tell: Callable[[str], None] = screen.say
        self._spaces: set[str] = set()
        self.hint = ""
        """The end of the sentence, where the service does not know a session."""

    def agent(self, store: Use = "needed") -> hopline.AgentClient:
        """The client of the agent API."""
        asked = self.asked
        needed = {"--base-url URL or HOPLINE_BASE_URL": asked.base_url}
        needed["HOPLINE_API_KEY, the API key that the programs use,"] = said("HOPLINE_API_KEY")
        options = self._options(store, needed)
        cap: Decimal | None = getattr(asked, "daily_cap", None)
        return self.enter_context(hopline.AgentClient(base_url=asked.base_url, daily_cap_usd=cap, **options))

    def reseller(self, store: Use = "needed") -> hopline.ResellerClient:
        """The client of the reseller's backend."""
        options = self._options(store, {name: said(name) for name in _RESELLER})
        return self.enter_context(hopline.ResellerClient(**options))

    def clients(self, store: Use = "needed") -> list[Client]:
        """The clients of all accounts whose credentials are there."""
        has_reseller = all(said(name) for name in _RESELLER)
        made: list[Client] = [self.reseller(store)] if has_reseller else []
        return made if has_reseller and said("HOPLINE_API_KEY") is None else [self.agent(store), *made]

    def type(self, *words: str) -> str:
        """A command to type next."""
        return typed(self.asked, *words)

    def find(self, name: str, fits: Callable[[hopline.Saved], bool], what: str) -> tuple[Client, hopline.Saved]:
        """The one entry that a name stands for: an intent, a session, an order or a record."""
        entries = [(client, one) for client in self.clients() for one in client.walk_saved() if fits(one)]
        found = [pair for pair in entries if name in names_of(pair[1])]
        if len(found) == 1:
            return found[0]
        if found:
            raise Stop(f"`{name}` stands for {len(found)} records; name one of them", [one.record for _, one in found])
        known = [known for _, one in entries for known in names_of(one)]
        others = self.unseen()
        elsewhere = f"; {others_said(others)}" if others else ""
        raise Stop(f"the store has no {what} `{name}`{alike(name, known)}{elsewhere}", [self.type("doubts"), self.type("sessions")])

    def session_id(self, agent: hopline.AgentClient, name: str) -> str:
        """The session that a name stands for: an intent or a record of the store, or the session's id, which no store needs to know."""
        entries = list(agent.walk_saved()) if self.asked.store is not None else []
        found = {one.session_id for one in entries if one.session_id is not None and name in names_of(one)}
        if len(found) > 1:
            raise Stop(f"`{name}` stands for {len(found)} sessions; name one of them", [self.type(*self.asked.words, each) for each in sorted(found)])
        if found:
            return found.pop()
        if (doubt := next((one for one in entries if name in names_of(one)), None)) is not None:
            raise Stop(f"`{name}` has no session: it is {doubt.holds.replace('_', ' ')}", [self.type("doubts")], code=3)
        self.hint = alike(name, [known for one in entries for known in names_of(one)])
        return name

    def living(self, agent: hopline.AgentClient, name: str, to: str = "end") -> str:
        """The session that a name stands for, to end or rotate it. What the store does not know is read first: a mistyped name is no session's."""
        session_id = self.session_id(agent, name)
        if session_id == name:
            try:
                agent.get_session(session_id=name)
            except hopline.Refused as error:
                if error.code == "SESSION_NOT_FOUND":
                    has = "the account has no" if self.asked.store is None else "neither the account nor the store has a"
                    raise Stop(f"{has} session `{name}`, so nothing was sent to {to} it{self.hint}", [self.type("sessions")]) from None
        return session_id

    def on_event(self, event: hopline.Event) -> None:
        """Says how a purchase goes on."""
        if (text := _progress(event)) is not None:
            self.tell(text)

    def _options(self, store: Use, needed: dict[str, Any]) -> dict[str, Any]:
        asked = self.asked
        if store == "needed":
            needed = {"--store FOLDER or HOPLINE_STORE": asked.store, **needed}
        if (missing := next((name for name, value in needed.items() if not value), None)) is not None:
            raise Stop(f"{missing} is needed", code=2)
        options: dict[str, Any] = {"same_account": asked.same_account, "on_event": self.on_event}
        if asked.account is not None:
            options["account"] = asked.account
        if store != "none" and asked.store is not None:
            # A client would make the folder, and a mistyped path would be a store that remembers no purchase.
            if not is_database(asked.store) and not os.path.isdir(asked.store):
                raise Stop(f"there is no folder `{asked.store}`", [self.type("store", "init")])
            options["store"] = watched(asked.store, self._spaces)
        return options

    def unseen(self) -> int:
        """Counts the records of the store that no client of this command has listed: of other account names, or of the other API."""
        path = self.asked.store
        if is_database(path):
            return database.unseen(path, self._spaces)
        in_rust, in_node = (os.path.join(path, name) for name in ("names", "open"))
        spaces = {name.split(".")[0] for part in (in_rust, in_node) if os.path.isdir(part) for name in os.listdir(part)} - self._spaces
        store = folder(path)
        try:
            return sum(_count(store, space) for space in sorted(spaces) if set(space) <= set("0123456789abcdef"))
        finally:
            store.close()


def others_said(count: int) -> str:
    """The sentence about records that were not looked at."""
    what = "1 record was" if count == 1 else f"{count} records were"
    return f"{what} not looked at, of another `account` or of the other API: --account NAME, or HOPLINE_API_KEY, or {', '.join(_RESELLER)}"


def _count(store: FolderOfAny, space: str) -> int:
    """Counts the records of a space that stay until somebody deals with them, without those of pools themselves."""
    found, after, more = 0, None, True
    while more:
        entries, more = store.list(space, after=after, open=True)
        found += sum(not entry.name.startswith(f"{space}.q") for entry in entries)
        after = entries[-1].name if entries else None
        more = more and after is not None
    return found


def watched(path: str, spaces: set[str]) -> FolderOfAny | hopline.PostgresStore:
    """Returns a store which notes the spaces that are listed: each account name of each API has one."""
    if is_database(path):
        base: Any = hopline.PostgresStore
        database.opened(path).close()
    else:
        base = node_folder.NodeFolder if node_folder.is_one(path) else hopline.FolderStore

    class Watched(base):  # type: ignore[misc]
        def list(self, space: str, /, *, after: str | None, open: bool) -> hopline.StoredPage:
            spaces.add(space)
            return super().list(space, after=after, open=open)  # type: ignore[no-any-return]

    made: FolderOfAny | hopline.PostgresStore = Watched(path)
    return made


def folder(path: str) -> FolderOfAny:
    """Returns the store of a folder, whichever language made it."""
    return node_folder.NodeFolder(path) if node_folder.is_one(path) else hopline.FolderStore(path)


def names_of(one: hopline.Saved) -> Sequence[str]:
    """The names by which an entry can be given."""
    return [name for name in (one.intent, one.session_id, one.order_no, one.record) if name is not None]


def name_of(one: hopline.Saved) -> str:
    """The name by which a person knows an entry, and which a command takes."""
    return one.intent or one.record


def is_doubt(one: hopline.Saved) -> bool:
    """Returns true if nobody knows what became of an operation, and nobody is at work on it."""
    return one.holds.startswith("in_doubt") or (one.holds == "under_way" and one.whose == "free")


def is_settled(one: hopline.Saved) -> bool:
    """Returns true for what a person said has happened, and the service has not shown yet."""
    return one.settled is True


def members_of(error: hopline.HoplineError) -> dict[str, Any]:
    """The members of an error that a program reads."""
    names = ("kind", "effect", "advice", "operation", "code", "status", "intent", "record", "session_id", "order_no", "retry_at", "request_id")
    return {name: getattr(error, name) for name in names}


def next_commands(error: hopline.HoplineError, asked: argparse.Namespace) -> list[str]:
    """The commands that an error's advice means."""
    name = error.intent or error.record
    session = error.session_id
    if error.effect == "done" and name is not None:
        return [typed(asked, "resume", name)]
    words: dict[str, tuple[str, ...]] = {
        "recharge": ("balance",),
        "read_prices": ("products",),
        "terminate_session": ("sessions",),
    }
    if name is not None:
        words |= {"resume": ("resume", name), "wait_order": ("resume", name), "reconcile": ("settle", name), "check_account": ("settle", name)}
        words["new_intent"] = ("forget", name)
    if session is not None:
        words |= {"terminate_again": ("end", session), "read_session": ("proxy", session)}
    return [typed(asked, *words[error.advice])] if error.advice in words else []


def _progress(event: hopline.Event) -> str | None:
    match event.event:
        case "priced":
            return f"one unit costs {event.unit_price} USD"
        case "accepted":
            charge = "" if event.estimated_charge_usd is None else f", for {event.estimated_charge_usd} USD"
            return f"accepted: session {event.session_id}{charge}"
        case "ordered":
            return f"accepted: order {event.order_no}"
        case "status" | "order_status":
            return f"status: {event.status}"
        case "repeating":
            return f"no success yet: {event.because.what if event.because is not None else 'failed'}; again in {event.delay or 0:.1f} s"
        case "asking_time":
            return "reading the service's time, to know how old the key is"
    return None
