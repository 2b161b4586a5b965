"""The dashboard for Grafana has a panel for each metric, by the names that Prometheus has for them, and so have the alerts of the page."""

import json
import re
from pathlib import Path

import hopline
from canned import until
from conftest import BUY, ROOT
from dashboard import dashboard, metrics, prometheus
from hopline.opentelemetry import instrument
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, generate_latest
from sandbox import Sandbox

DOCS = ROOT / "core" / "docs"
BY = r"by \(([^)]*)\)"


def test_the_dashboard_is_made_of_the_metrics_that_there_are() -> None:
    kept = (DOCS / "grafana.json").read_text()
    assert kept == dashboard(), "make it anew: `python tests/hosts/python/dashboard.py > core/docs/grafana.json`"
    assert sorted(panel["title"] for panel in json.loads(kept)["panels"]) == [name for name, *_ in metrics()]


def test_prometheus_knows_the_metrics_and_labels_by_the_names_of_the_dashboard_and_of_the_alerts(sandbox: Sandbox, tmp_path: Path) -> None:
    reader = PrometheusMetricReader()
    provider = MeterProvider([reader])
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path), daily_cap_usd=9) as agent:
        instrument(agent, meter_provider=provider)
        with agent.open_pool("shop", size=3, **BUY, replace="never") as pool:
            with pool.acquire(timeout=60) as lease:
                lease.observe(200)
                # Two sessions use the cap up, and the third is not bought.
                with pool.acquire(timeout=60):
                    until(lambda: _holds(pool))
                    exported = generate_latest(REGISTRY).decode()
            exported += generate_latest(REGISTRY).decode()
    provider.shutdown()
    names = {line.split("{")[0].split(" ")[0] for line in exported.splitlines() if line.startswith("hopline_")}
    labels = {label for line in exported.splitlines() if line.startswith("hopline_") for label in re.findall(r'(\w+)="', line)}
    known = {prometheus(name, kind, unit) + ("_bucket" if kind == "histogram" else "") for name, kind, unit, _ in metrics()}
    told = [target["expr"] for panel in json.loads((DOCS / "grafana.json").read_text())["panels"] for target in panel["targets"]]
    alerts = re.findall(r"expr: (.*)", (DOCS / "watching.md").read_text())
    assert len(alerts) == 3
    used = {name for query in told + alerts for name in re.findall(r"\bhopline_\w+", re.sub(BY, "", query))} - {"hopline_pool_name"}
    assert used == known
    # Some of them have no value here: nothing was in doubt, blocked, rotated or leaked.
    rare = {"hopline_pool_acquire_timeouts_total", "hopline_pool_rotations_total", "hopline_pool_leases_leaked_total", "hopline_store_claims_lost_total"}
    assert known - names <= rare
    said = {label for query in told + alerts for by in re.findall(BY, query) for label in by.split(", ")}
    # Of a rotation that did not happen the reason is not there, but that of the hold is.
    assert said <= labels | {"le"}, said - labels


def _holds(pool: hopline.Pool) -> bool:
    try:
        pool.acquire(timeout=0.2).release()
    except hopline.Unavailable:
        pass
    return pool.status().hold is not None
