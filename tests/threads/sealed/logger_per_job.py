"""Loggers are named after jobs; the hierarchy keeps them all for the life of the process.
ow2-proactive/scheduling#2879
A scheduler makes a logger for each job, attaches the job's context to it and runs the job."""
import logging
import time


class JobContext:
    def __init__(self, job):
        self.job = job
        self.variables = {f"{job}.VAR_{n}": f"value {n} of {job}" for n in range(60)}


class ContextFilter(logging.Filter):
    def __init__(self, context):
        super().__init__()
        self.context = context

    def filter(self, record):
        record.job = self.context.job
        return True


def run(job):
    logger = logging.getLogger(f"scheduler.jobs.{job}")
    logger.addFilter(ContextFilter(JobContext(job)))
    for task in range(3):
        logger.debug("task %d of %s", task, job)
    return sum(i * i for i in range(2000))


def main():
    logging.basicConfig(level=logging.INFO)
    for hour in range(50):
        for number in range(30):
            run(f"job{hour:03d}{number:03d}")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
