"""Prints the dashboard of the site's page for Grafana, made of the metrics that a client has: `python dashboard.py > core/docs/grafana.json`."""

import json
from collections.abc import Iterator
from typing import Any

import hopline
from canned import SOUND, never
from hopline.opentelemetry import instrument

POOL = "hopline_pool_name"
OWN = "ready|leased|creating|changing|resting|in_doubt"
CHOSEN = f'{{{POOL}=~"$pool"}}'
GAUGES = {
    # Each worker counts its own, and sees the rest of the pool as the others do.
    "hopline.pool.sessions": f'sum by (state) (hopline_pool_sessions{{{POOL}=~"$pool", state=~"{OWN}"}})',
    "hopline.pool.waiting": f"sum by ({POOL}) (hopline_pool_waiting{CHOSEN})",
    "hopline.pool.spent_usd": f"max by ({POOL}) (hopline_pool_spent_usd{CHOSEN})",
    "hopline.pool.held": f"count by ({POOL}, reason, needs) (hopline_pool_held{CHOSEN})",
    "hopline.pool.blocked_everywhere": f"max by ({POOL}) (hopline_pool_blocked_everywhere{CHOSEN})",
}
COUNTED_BY = {
    "hopline.purchases": "hopline_operation, result",
    "hopline.spent_usd": "hopline_operation",
    "hopline.pool.purchases": f"{POOL}, result",
    "hopline.pool.rotations": f"{POOL}, reason",
    "hopline.pool.observations": f"{POOL}, seen",
    "hopline.store.calls": "call",
    "hopline.store.claims.lost": "",
    "hopline.request.duration": "hopline_operation",
}


class Noting:
    """A provider of metrics that notes which there are."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str, str]] = []

    def get_meter(self, *_: Any, **__: Any) -> Any:
        return self

    def __getattr__(self, made: str) -> Any:
        kind = made.removeprefix("create_")

        def create(name: str, *more: Any) -> Any:
            unit, about = more[-2:]
            self.found.append((name, kind, unit, about))
            return self

        return create


def metrics() -> list[tuple[str, str, str, str]]:
    """The metrics of a client: name, kind, unit, description."""
    noting = Noting()
    with hopline.AgentClient(**SOUND, http=never) as agent:
        instrument(agent, meter_provider=noting)  # type: ignore[arg-type]
    return sorted(noting.found)


def prometheus(name: str, kind: str, unit: str) -> str:
    """The name that Prometheus has for a metric. Units in braces are no part of it."""
    plain = name.replace(".", "_") + ("_seconds" if unit == "s" else "")
    return plain + ("_total" if kind == "counter" else "")


def queries(name: str, kind: str, unit: str) -> Iterator[str]:
    there = prometheus(name, kind, unit)
    by = COUNTED_BY.get(name, POOL)
    chosen = CHOSEN if POOL in by else ""
    if kind == "observable_gauge":
        yield GAUGES[name]
    elif kind == "counter":
        yield f"sum{f' by ({by})' if by else ''} (increase({there}{chosen}[$__rate_interval]))"
    else:
        for part in ("0.5", "0.95"):
            yield f"histogram_quantile({part}, sum by (le, {by}) (rate({there}_bucket{chosen}[$__rate_interval])))"


def panel(place: int, name: str, kind: str, unit: str, about: str) -> dict[str, Any]:
    shown = "s" if unit == "s" else "currencyUSD" if unit == "{USD}" else "short"
    return {
        "id": place + 1,
        "type": "timeseries",
        "title": name,
        "description": about,
        "datasource": {"type": "prometheus", "uid": "$datasource"},
        "gridPos": {"x": place % 3 * 8, "y": place // 3 * 8, "w": 8, "h": 8},
        "fieldConfig": {"defaults": {"unit": shown, "min": 0}, "overrides": []},
        "targets": [{"refId": chr(65 + number), "expr": query} for number, query in enumerate(queries(name, kind, unit))],
    }


def dashboard() -> str:
    pools = {"name": "pool", "type": "query", "label": "Pool", "multi": True, "includeAll": True, "allValue": ".*", "refresh": 2}
    variables = [
        {"name": "datasource", "type": "datasource", "label": "Prometheus", "query": "prometheus"},
        {**pools, "datasource": {"type": "prometheus", "uid": "$datasource"}, "query": f"label_values(hopline_pool_sessions, {POOL})"},
    ]
    # Pools first: they are what somebody looks for.
    ordered = sorted(metrics(), key=lambda metric: (metric[0] not in GAUGES, ".pool." not in metric[0], metric[0]))
    made = {
        "uid": "hopline",
        "title": "Hopline",
        "tags": ["hopline"],
        "schemaVersion": 39,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": variables},
        "panels": [panel(place, *metric) for place, metric in enumerate(ordered)],
    }
    return json.dumps(made, indent=2) + "\n"


if __name__ == "__main__":
    print(dashboard(), end="")
