"""Timers copy the current context, so a variable set for one run lives until the timer fires.
run-llama/llama-agents#486
A workflow server runs workflows with their state in a context variable; each arms a long timeout."""
import asyncio
import contextvars

current_run = contextvars.ContextVar("current_run")


class Run:
    def __init__(self, number):
        self.number = number
        self.state = {f"step-{n}": bytes(9_000) for n in range(30)}

    def finish(self):
        return len(self.state)


def on_timeout(number):
    print("run", number, "timed out")


async def workflow(number):
    current_run.set(Run(number))
    asyncio.get_running_loop().call_later(900, on_timeout, number)
    await asyncio.sleep(0.01)
    return current_run.get().finish()


async def main():
    steps = 0
    for number in range(180):
        steps += await asyncio.create_task(workflow(number))
        await asyncio.sleep(0.02)
        if number % 10 == 9:
            print(f"request {number + 1}: {steps} steps", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
