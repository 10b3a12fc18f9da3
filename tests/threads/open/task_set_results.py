"""Tasks were kept in a set against early collection and nobody took them out again.
BerriAI/litellm#5559
An asyncio service starts a background task for each message and keeps a reference to it."""
import asyncio
import os


class Relay:
    def __init__(self):
        self.tasks = set()
        self.delivered = 0

    def start(self, coroutine):
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        return task

    async def deliver(self, number):
        payload = os.urandom(64 * 1024)
        await asyncio.sleep(0.005)
        self.delivered += 1
        return {"number": number, "echo": payload}

    async def on_message(self, number):
        self.start(self.deliver(number))
        await asyncio.sleep(0.01)


async def main():
    relay = Relay()
    for minute in range(40):
        for message in range(16):
            await relay.on_message(minute * 16 + message)
    await asyncio.sleep(0.1)
    print(relay.delivered)


asyncio.run(main())
