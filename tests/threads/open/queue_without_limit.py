"""Messages are taken in faster than they are worked on and the work queue has no limit.
reddit/baseplate.py#302
A consumer takes messages from a broker into an asyncio queue; workers process them."""
import asyncio
import random


class Message:
    __slots__ = ("body", "tag")

    def __init__(self, body, tag):
        self.body = body
        self.tag = tag


async def consume(queue, ticks):
    rng = random.Random(2)
    for tick in range(ticks):
        for tag in range(8):
            queue.put_nowait(Message(rng.randbytes(60_000), (tick, tag)))
        await asyncio.sleep(0.15)
    await queue.put(None)


async def work(queue):
    done = 0
    while (message := await queue.get()) is not None:
        done += sum(message.body[:2000]) & 1
        await asyncio.sleep(0.075)
        if done > 100_000:
            break
    return done


async def main():
    queue = asyncio.Queue()
    producer = asyncio.create_task(consume(queue, 60))
    worker = asyncio.create_task(work(queue))
    await producer
    worker.cancel()
    print("left in the queue:", queue.qsize())


asyncio.run(main())
