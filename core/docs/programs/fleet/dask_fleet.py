"""The fleet with Dask, on this machine: `python dask_fleet.py URL…`. A cluster of many machines takes the same task and plugin."""

import sys

import job
from distributed import Client, LocalCluster, Worker, WorkerPlugin, as_completed


class Closing(WorkerPlugin):
    """Closes the pool of a worker that ends."""

    name = "hopline"

    def teardown(self, worker: Worker) -> None:
        job.close(grace=2)  # the nanny kills a worker that takes more than 4 seconds


if __name__ == "__main__":
    with LocalCluster(n_workers=4, threads_per_worker=2) as cluster, Client(cluster) as client:
        client.register_plugin(Closing())
        for page in as_completed(client.map(job.fetch, sys.argv[1:], retries=10)):
            print(page.result())
