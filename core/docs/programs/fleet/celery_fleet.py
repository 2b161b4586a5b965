"""The fleet with Celery. Start as many workers as you like, on any machine: `celery -A celery_fleet worker`."""

import os
from typing import Any

import hopline
import job
import requests
from celery import Celery, signals

app = Celery("fleet", broker=os.environ["BROKER"], backend=os.environ["BROKER"])
app.conf.update(
    # A task whose process died is done again: at once, or by Redis after that time if the whole worker died. No task may take longer.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    broker_transport_options={"visibility_timeout": 300},
    # No worker has tasks in hand that another one could do.
    worker_prefetch_multiplier=1,
)


PASSING = (hopline.Unavailable, hopline.Busy, hopline.Cancelled, hopline.StoreError, requests.RequestException)


@app.task(autoretry_for=PASSING, retry_backoff=True, retry_backoff_max=60, max_retries=20)
def fetch(url: str) -> str:
    return job.fetch(url)


# The first signal is that of each process of a worker, and the second that of a worker with `--pool threads` or `solo`.
@signals.worker_process_shutdown.connect
@signals.worker_shutdown.connect
def close(**_: Any) -> None:
    job.close()
