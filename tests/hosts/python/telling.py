"""How a story of the demo looks, and what it checks."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

import hopline
import httpx


class Untrue(Exception):
    """Something is not as told."""


def ensure(holds: object, said: str) -> None:
    if not holds:
        raise Untrue(said)


def row(label: str, text: str) -> None:
    print(f"  {label:<11}{text}", flush=True)


@dataclass
class Teller:
    """The cost of the steps of a story, by a balance that is read after each."""

    read_balance: Callable[[], Decimal]
    balance: Decimal = Decimal(0)
    steps: list[tuple[str, float, Decimal, Decimal]] = field(default_factory=list)

    def done(self, name: str, begun: float) -> None:
        balance = self.read_balance()
        self.steps.append((name, time.monotonic() - begun, self.balance - balance, balance))
        self.balance = balance

    def summary(self) -> None:
        print(f"\n  {'step':<11}{'time':>8}{'cost USD':>12}{'balance USD':>14}")
        for name, seconds, cost, balance in self.steps:
            print(f"  {name:<11}{f'{seconds:.1f} s':>8}{cost:>12.2f}{balance:>14.2f}")
        print()


class Heard:
    """Tells what happens on the way."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._status: str | None = None

    def __call__(self, event: hopline.Event) -> None:
        match event.event:
            case "accepted":
                self._begun = time.monotonic()
                row("accepted", f"{event.session_id}, for {event.estimated_charge_usd or 0:.2f} USD")
            case "ordered":
                self._begun = time.monotonic()
                row("accepted", f"order {event.order_no}")
            case "status" | "order_status" if event.status != self._status:
                self._status = event.status
                row(event.status or "?", f"after {time.monotonic() - self._begun:.1f} s")
            case "repeating":
                row("again", f"in {event.delay or 0:.1f} s, since {event.because and event.because.what}")


def visit(url: str, proxy: hopline.Proxy) -> tuple[int, str]:
    """Fetches a page through a proxy, which also looks the name up: the status, and where the site saw it come from."""
    with httpx.Client(**proxy.for_httpx(), trust_env=False, timeout=10) as client:
        answer = client.get(url)
        return answer.status_code, answer.json()["address"]


def refuses(url: str, proxy: hopline.Proxy, said: str) -> None:
    """A proxy that is no longer paid for must refuse its password."""
    try:
        visit(url, proxy)
    except httpx.ProxyError as refusal:
        return ensure("password" in str(refusal).lower(), f"the proxy was to refuse the password, but: {refusal}")
    raise Untrue(said)
