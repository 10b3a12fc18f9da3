import asyncio


async def main():
    results = asyncio.Queue()
    for epoch in range(30):
        for k in range(6):
            await results.put(bytearray(b"q") * 300_000)
            await asyncio.sleep(0.003)
        while not results.empty():
            results.get_nowait()
        print(f"epoch {epoch}: done", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
