"""Fire-and-forget tasks are held in a set and leave it when they are done.
python/cpython#91887
A service that starts background tasks and lets a callback drop the reference of each finished one."""
import asyncio
import random

background = set()


def fire_and_forget(coroutine):
    task = asyncio.create_task(coroutine)
    background.add(task)
    task.add_done_callback(background.discard)


async def index_document(text, counts):
    words = [text[i:i + 7] for i in range(0, len(text), 7)]
    await asyncio.sleep(random.random() * 0.1)
    for word in words[:50]:
        counts[word[:1]] = counts.get(word[:1], 0) + 1
    return words


async def handle(request, counts):
    text = "".join(random.choices("abcdefgh ", k=40_000))
    fire_and_forget(index_document(text, counts))
    await asyncio.sleep(0.005)


async def main():
    random.seed(0)
    counts = {}
    for request in range(450):
        await handle(request, counts)
        if request % 15 == 0:
            print(f"request {request}: {len(background)} tasks run", flush=True)
    while background:
        await asyncio.sleep(0.01)
    print(sorted(counts.items()))


if __name__ == "__main__":
    asyncio.run(main())
