"""Context copies stay as long as a handle to a scheduled call stays; cancelling the call lets both go.
aiidateam/aiida-core#4698
Processes are run with their data in a context variable and a timeout that is cancelled when they end."""
import asyncio
import contextvars
import random

process = contextvars.ContextVar("process")


async def compute(name, rng):
    process.set([rng.random() for _ in range(20_000)])
    loop = asyncio.get_running_loop()
    handle = loop.call_later(600, print, name)
    try:
        await asyncio.sleep(0.01)
        return max(process.get())
    finally:
        handle.cancel()


async def main():
    rng = random.Random(3)
    best = 0.0
    for number in range(300):
        best = max(best, await asyncio.create_task(compute(f"calc-{number}", rng)))
        await asyncio.sleep(0.005)
    print(best)


asyncio.run(main())
