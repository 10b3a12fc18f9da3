"""Each new client adds one more handler to a shared logger, and none is ever removed.
PaddleHQ/paddle-python-sdk#144
A job runner makes a client per job; each client sets up its logging."""
import logging
import time


class JobHandler(logging.Handler):
    def __init__(self, job, settings):
        super().__init__(logging.ERROR)
        self.job = job
        self.settings = settings

    def emit(self, record):
        print(self.job, record.getMessage())


class Client:
    def __init__(self, job, settings):
        self.log = logging.getLogger("client")
        self.log.addHandler(JobHandler(job, settings))
        self.job = job

    def call(self, values):
        self.log.debug("calling with %d values", len(values))
        return sum(values) / len(values)


def run_jobs(batch):
    total = 0.0
    for job in range(25):
        settings = {f"key-{batch}-{job}-{n}": float(n * job) for n in range(40)}
        client = Client(f"{batch}/{job}", settings)
        total += client.call(list(settings.values()))
    return total


logging.basicConfig(level=logging.INFO)
for batch in range(80):
    result = run_jobs(batch)
    print(f"batch {batch}: {result:.1f}", flush=True)
    time.sleep(0.08)
