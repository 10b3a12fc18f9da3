"""What belongs to one request stays in the thread's locals and is found again by the next.
rorodata/firefly#70
Worker threads handle requests and note warnings in a threading.local object."""
import queue
import random
import threading
import time

ctx = threading.local()


def note(text):
    if not hasattr(ctx, "notes"):
        ctx.notes = []
    ctx.notes.append(text)


def handle(request):
    rng = random.Random(request)
    for line in range(60):
        note(f"{request}:{line}:" + rng.randbytes(1000).hex())
    return rng.random()


def worker(jobs, results):
    while (request := jobs.get()) is not None:
        results.append(handle(request) > 0.5)
        jobs.task_done()


def main():
    jobs, results = queue.Queue(), []
    threads = [threading.Thread(target=worker, args=(jobs, results)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for request in range(300):
        jobs.put(request)
        time.sleep(0.02)
        if request % 10 == 9:
            print(f"request {request + 1}: {sum(results)}", flush=True)
    for _ in threads:
        jobs.put(None)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
