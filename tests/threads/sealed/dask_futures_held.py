"""Memory of the workers is not freed when tasks complete, for somebody still holds their futures.
dask/distributed#2757
Submits tasks to a local Dask worker day by day and keeps the futures by name."""
import numpy as np
from dask.distributed import Client, LocalCluster


def simulate(day, size):
    rng = np.random.default_rng(day)
    return rng.standard_normal((size, 100))


def total(table):
    return float(table.sum())


def main():
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        tables = {}
        for day in range(40):
            table = client.submit(simulate, day, 4000)
            tables[day] = table
            print(f"day {day}: {client.submit(total, table).result():.2f}", flush=True)
            client.submit(sum, range(4_000_000), pure=False).result()


if __name__ == "__main__":
    main()
