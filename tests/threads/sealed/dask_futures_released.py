"""A worker's memory climbs with each computation; once nobody holds the futures it comes down.
dask/distributed#154
Runs a chain of tasks per day on a local Dask worker and keeps nothing but the last numbers."""
import numpy as np
from dask.distributed import Client, LocalCluster


def load(day):
    return np.random.default_rng(day).random((3000, 120))


def clean(table):
    return np.clip(table, 0.05, 0.95)


def score(table):
    return float(table.std())


if __name__ == "__main__":
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    client = Client(cluster)
    scores = []
    for day in range(40):
        table = client.submit(clean, client.submit(load, day))
        scores.append(client.submit(score, table).result())
        del table
        print(f"day {day} {scores[-1]:.5f}", flush=True)
        client.submit(sum, range(4_000_000), pure=False).result()
    client.close()
    cluster.close()
