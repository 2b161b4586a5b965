"""HTTP clients that send through a pool: who leases, what is observed, when a request is repeated, what belongs to an exit. No HTTP client
is imported here; each has a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from email.message import Message
from http.cookiejar import CookieJar
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import Request

from ._errors import misuse
from ._failure import _again
from ._told import HoplineError, Unavailable

if TYPE_CHECKING:
    from ._async_pool import AsyncLease, AsyncPool
    from ._sync_pool import Lease, Pool

T = TypeVar("T")

REPEATS = 2
"""So many times a request is repeated after a block, each time through another session."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods of requests that may be repeated."""
WAIT = 90.0
"""The seconds for which a request waits for a session, unless its client says otherwise: longer than a session rests after its first block."""
LONGEST = 600.0
"""The seconds after which a lease goes back though its answer was neither read nor closed, where nothing else tells that it was dropped."""
KEPT, KEEPING = 65536, 5.0
"""The bytes of a block's body that are kept at most, and the seconds for which they are waited for."""


class AnyLease(Protocol):
    """The part of a lease, of threads or tasks, that an HTTP client needs."""

    session_id: str
    generation: int
    slot: int

    @property
    def valid(self) -> bool:
        """As of a lease."""
        ...

    def observe(self, seen: Any) -> str:
        """As of a lease."""
        ...

    def release(self) -> None:
        """As of a lease."""
        ...


A = TypeVar("A")
L = TypeVar("L", bound=AnyLease)


class Asked:
    """One request of an HTTP client, over as many leases as it takes."""

    def __init__(self, method: str, url: str, *, key: str | None = None, wait: float = WAIT, is_sent_once: bool = False) -> None:
        self.url, self._key, self._wait, self._avoid = url, key, wait, cast("str | None", None)
        self._left = REPEATS if method.upper() in SAFE and not is_sent_once else 0

    def terms(self) -> dict[str, Any]:
        """The terms of the next lease: its target is the host of the URL."""
        return {"target": urlsplit(self.url).hostname, "key": self._key, "avoid": self._avoid, "timeout": self._wait}

    def repeats(self, lease: AnyLease, advice: str) -> bool:
        """Returns true if an answer with that advice is a block, and the request is to be repeated through another session."""
        # Of a lease that is over nothing is observed, and an answer that came is as good as any. `wait` means that all exits are blocked.
        if advice != "give_back" or not lease.valid or not self._left:
            return False
        self._left -= 1
        self._avoid = lease.session_id
        return True

    def is_of_the_site(self, answer: object) -> bool:
        """Returns true if an answer is a 407 that came through a tunnel, where no proxy can have given it."""
        return self.url.startswith("https:") and 407 in (getattr(answer, "status_code", None), getattr(answer, "status", None))

    def may_return(self) -> None:
        """Allows the same session again: in a pool of one there is no other, but it gets another exit."""
        self._avoid = None


class Sending(Generic[L, A]):
    """How an HTTP client sends a request."""

    client_error: type[Exception]
    """An error of the client's own, which `Unavailable` is made into."""

    def send(self, lease: L) -> A:
        """Sends the request through a lease, and returns the answer as soon as its head is there."""
        raise NotImplementedError

    def observe(self, lease: L, answer: A) -> str:
        """Observes an answer, and returns the advice."""
        return lease.observe(answer)

    def keep(self, answer: A) -> None:
        """Takes an answer off its exit, which is given back: a body that is short comes along, of any other nothing."""
        raise NotImplementedError

    def drop(self, answer: A) -> None:
        """Closes an answer that nobody reads."""
        raise NotImplementedError


class AsyncSending(Generic[L, A]):
    """How an HTTP client for tasks sends a request."""

    client_error: type[Exception]

    async def send(self, lease: L) -> A:
        """As of `Sending`."""
        raise NotImplementedError

    async def observe(self, lease: L, answer: A) -> str:
        """As of `Sending`."""
        return lease.observe(answer)

    async def keep(self, answer: A) -> None:
        """As of `Sending`."""
        raise NotImplementedError

    async def drop(self, answer: A) -> None:
        """As of `Sending`."""
        raise NotImplementedError


def through(pool: Pool, asked: Asked, sending: Sending[Lease, A]) -> tuple[A, Lease | None]:
    """Sends a request through a pool. Returns the answer, and the lease to be given back once its body is read or closed. There is no lease
    with an answer that was a block where no other session was to be had: an answer is more than an error.
    """
    blocked: list[A] = []
    try:
        while True:
            try:
                if blocked and pool.status().size == 1:
                    asked.may_return()
                lease = pool.acquire(**asked.terms())
            except HoplineError as why:
                if blocked:
                    return blocked.pop(), None
                raise as_client_error(why, sending.client_error) from None
            answer = _answer(sending, asked, lease, blocked)
            if answer is not None:
                return answer, lease
            lease.release()
    finally:
        _drop(sending, blocked)


def _answer(sending: Sending[L, A], asked: Asked, lease: L, blocked: list[A]) -> A | None:
    """One attempt. An answer that is a block worth a repeat goes to `blocked`, in place of the one before."""
    try:
        _drop(sending, blocked)
        answer = _sent(sending, lease)
        blocked.append(answer)
        advice = lease.observe("target") if asked.is_of_the_site(answer) else sending.observe(lease, answer)
        if not asked.repeats(lease, advice):
            return blocked.pop()
        sending.keep(answer)  # it may be the client's after all, if no other session is to be had
        return None
    except BaseException:
        lease.release()
        raise


def _sent(sending: Sending[L, A], lease: L) -> A:
    try:
        return sending.send(lease)
    except HoplineError:  # the proxy is not for this client
        raise
    except Exception as error:  # an interrupt says nothing about the exit
        lease.observe(error)
        raise


def _drop(sending: Sending[L, A], answers: list[A]) -> None:
    while answers:
        with suppress(Exception):
            sending.drop(answers.pop())


async def through_async(pool: AsyncPool, asked: Asked, sending: AsyncSending[AsyncLease, A]) -> tuple[A, AsyncLease | None]:
    """Does in a task as `through` does in a thread."""
    blocked: list[A] = []
    try:
        while True:
            try:
                if blocked and (await pool.status()).size == 1:
                    asked.may_return()
                lease = await pool.acquire(**asked.terms())
            except HoplineError as why:
                if blocked:
                    return blocked.pop(), None
                raise as_client_error(why, sending.client_error) from None
            answer = await _answer_async(sending, asked, lease, blocked)
            if answer is not None:
                return answer, lease
            lease.release()
    finally:
        await _drop_async(sending, blocked)


async def _answer_async(sending: AsyncSending[L, A], asked: Asked, lease: L, blocked: list[A]) -> A | None:
    try:
        await _drop_async(sending, blocked)
        answer = await _sent_async(sending, lease)
        blocked.append(answer)
        advice = lease.observe("target") if asked.is_of_the_site(answer) else await sending.observe(lease, answer)
        if not asked.repeats(lease, advice):
            return blocked.pop()
        await sending.keep(answer)
        return None
    except BaseException:
        lease.release()
        raise


async def _sent_async(sending: AsyncSending[L, A], lease: L) -> A:
    try:
        return await sending.send(lease)
    except HoplineError:
        raise
    except Exception as error:  # a cancellation says nothing about the exit
        lease.observe(error)
        raise


async def _drop_async(sending: AsyncSending[L, A], answers: list[A]) -> None:
    while answers:
        with suppress(Exception):
            await sending.drop(answers.pop())


def as_client_error(why: HoplineError, client_error: type[Exception]) -> HoplineError:
    """Makes `Unavailable` an error that users of an HTTP client catch, too. All else is returned as it is, such as that of a closed pool: no
    other request would fare better.
    """
    if not isinstance(why, Unavailable):
        return why
    return cast(HoplineError, _again(_unavailable(client_error), str(why), why._fields, getattr(why, "__notes__", None)))


_ERRORS: dict[type[Exception], type[Unavailable]] = {}


def _unavailable(client_error: type[Exception]) -> type[Unavailable]:
    if client_error in _ERRORS:
        return _ERRORS[client_error]

    def reduce(error: Unavailable) -> Any:
        return _unpickled, (client_error, str(error), error._fields, getattr(error, "__notes__", None))

    # In the namespace that a traceback shows.
    return _ERRORS.setdefault(client_error, type("Unavailable", (Unavailable, client_error), {"__module__": "hopline", "__reduce__": reduce}))


def _unpickled(client_error: type[Exception], *told: Any) -> Any:
    return _again(_unavailable(client_error), *told)


def check_pool(pool: object, kind: str, user: str) -> None:
    """Refuses a pool of the other kind of client."""
    if type(pool).__name__ == kind:
        return
    other = "an `AsyncAgentClient`" if kind == "AsyncPool" else "an `AgentClient`"
    misuse("pool", f"`{user}` works through a pool that {other} opened, and was given `{type(pool).__name__}`")


# Connections and cookies, which belong to an exit.


class Exit(Generic[T]):
    """An exit of a pool, by its session and generation: the connections through it, and the cookies that sites gave it."""

    def __init__(self, at: tuple[str, int], connections: T) -> None:
        self.at, self.connections, self.cookies = at, connections, CookieJar()
        self.settings: Any = None
        """Its proxy as the client takes that, of a client that is told so with each request: making them takes longer than a lease."""


class Exits(Generic[T]):
    """The exits that an HTTP client has used last, one for each slot of the pool."""

    def __init__(self, connect: Callable[[Any], T]) -> None:
        self._connect, self._lock = connect, Lock()
        self._of: dict[int, Exit[T]] = {}
        self._late: dict[tuple[str, int], Exit[T]] = {}
        """The exits of leases that were over before they were used, while others use the slot."""

    def of(self, lease: AnyLease) -> tuple[Exit[T], T | None]:
        """Returns the exit of a lease, and the connections of the exit before it, which are to be closed."""
        at = lease.session_id, lease.generation
        with self._lock:
            known = self._of.get(lease.slot)
            if known is not None and known.at == at:
                return known, None
            if known is not None and not lease.valid:
                if at not in self._late:
                    self._late[at] = Exit(at, self._connect(lease))
                return self._late[at], None
            exit = self._of[lease.slot] = Exit(at, self._connect(lease))
            return exit, None if known is None else known.connections

    def clear(self) -> list[T]:
        """Forgets all exits, and returns their connections."""
        with self._lock:
            known, self._of, self._late = [*self._of.values(), *self._late.values()], {}, {}
            return [exit.connections for exit in known]


_redirected: ContextVar[tuple[Cookies, str, CookieJar] | None] = ContextVar("hopline_redirected", default=None)
"""The place to which the last answer of this thread or task leads, with its client and the cookies of its exit: that client's next request may be
the step there."""


class Cookies:
    """The cookies of sites, of which each belongs to the exit that got it. A client's own jar knows nothing of exits, so of what it sends the
    cookies that sites have set get the values of the exit; where it has none, the value that the program gave before, or they are left out.
    Cookies that only a program sets are sent through each exit, and what the client does not send, such as after its jar was cleared, is not
    sent.
    """

    def __init__(self) -> None:
        self._set_by_sites, self._names = CookieJar(), dict[str, set[str]]()
        self._by_program: dict[str, dict[str, str | None]] = {}
        """By host: what the client sent before the site set a cookie of that name."""

    def header(self, exit: Exit[Any], url: str, given: str | None) -> str | None:
        """The header `Cookie` of a request through an exit, from the one that the client made."""
        if given is None:
            return None
        host, pairs = urlsplit(url).hostname or "", dict(_pairs(given))
        # A client may keep cookies that the jar here refuses, so names count as well.
        by_sites = set(_for(self._set_by_sites, url)).union(*(self._names.get(domain, ()) for domain in _domains(host)))
        if by_program := {name: value for name, value in pairs.items() if name not in by_sites}:
            self._by_program.setdefault(host, {}).update(by_program)
        if by_sites.isdisjoint(pairs):
            return given
        own, step = _for(exit.cookies, url), _redirected.get()
        if step is not None and step[:2] == (self, urldefrag(url).url):  # a redirect, whose cookie is often what the next page looks for
            own = _for(step[2], url) | own
        known = self._by_program.get(host, {}) | own
        sent = [(name, known[name]) for name in pairs if name in known]
        return "; ".join(name if value is None else f"{name}={value}" for name, value in sent) or None

    def take(self, exit: Exit[Any], url: str, status: int, location: str | None, set_cookies: Iterable[str]) -> None:
        """Keeps the cookies of an answer, and notes where it leads."""
        cookies = list(set_cookies)
        for cookie in cookies:
            self._names.setdefault(_domain(cookie) or urlsplit(url).hostname or "", set()).add(cookie.partition("=")[0].strip())
        if cookies:
            for jar in (exit.cookies, self._set_by_sites):
                jar.extract_cookies(cast(Any, _Answer(cookies)), Request(url))
        leads = urldefrag(urljoin(url, location)).url if location and 300 <= status < 400 else None
        _redirected.set(None if leads is None else (self, leads, exit.cookies))


def _domain(cookie: str) -> str:
    """The domain that a `Set-Cookie` names, if it does."""
    named = (part.partition("=") for part in cookie.split(";")[1:])
    return next((value.strip().lstrip(".").lower() for name, _, value in named if name.strip().lower() == "domain"), "")


def _domains(host: str) -> Iterable[str]:
    """A host and the domains above it."""
    labels = host.split(".")
    return (".".join(labels[at:]) for at in range(len(labels)))


class _Answer:
    def __init__(self, cookies: list[str]) -> None:
        self._headers = Message()
        for cookie in cookies:
            self._headers["Set-Cookie"] = cookie

    def info(self) -> Message:
        return self._headers


def _for(jar: CookieJar, url: str) -> dict[str, str | None]:
    """The cookies of a jar that belong to a URL."""
    request = Request(url)
    jar.add_cookie_header(request)
    return dict(_pairs(request.get_header("Cookie") or ""))


def _pairs(header: str) -> Iterable[tuple[str, str | None]]:
    for pair in header.split(";"):
        name, has_value, value = pair.strip().partition("=")
        if name or has_value:
            yield name, value if has_value else None
