"""An event queue without a bound grows with a slow reader; the bounded one holds its producer back.
flux0-ai/flux0#108
Producers push events into a queue of limited size that one slower consumer drains."""
import asyncio
import os


async def produce(name, queue, count):
    for number in range(count):
        event = {"source": name, "number": number, "data": os.urandom(150_000)}
        await queue.put(event)


async def drain(queue, expected):
    size = 0
    for number in range(expected):
        event = await queue.get()
        size += len(event["data"])
        await asyncio.sleep(0.012)
        if number % 20 == 19:
            print(f"tick {number // 20} waiting {queue.qsize()}", flush=True)
    return size


async def main(producers=4, each=150):
    queue = asyncio.Queue(maxsize=200)
    jobs = [asyncio.create_task(produce(f"p{i}", queue, each)) for i in range(producers)]
    total = await drain(queue, producers * each)
    await asyncio.gather(*jobs)
    print(total)


if __name__ == "__main__":
    asyncio.run(main())
