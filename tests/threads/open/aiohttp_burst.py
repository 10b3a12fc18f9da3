"""After a handful of big downloads the process stays large although the session is closed.
aio-libs/aiohttp#4833
A local aiohttp server answers small polls; once in the run several large files are fetched at the same time."""
import asyncio

from aiohttp import ClientSession, web


async def small(request):
    return web.json_response({"load": list(range(50))})


async def large(request):
    body = "".join(f"{n:06d};" for n in range(1_200_000))
    return web.Response(text=body)


async def serve():
    app = web.Application()
    app.add_routes([web.get("/poll", small), web.get("/plan", large)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, runner.addresses[0][1]


async def grab(session, url):
    async with session.get(url) as response:
        text = await response.text()
        return len(text.split(";"))


async def main():
    runner, port = await serve()
    base = f"http://127.0.0.1:{port}"
    for number in range(120):
        async with ClientSession() as session:
            async with session.get(base + "/poll") as response:
                await response.json()
            if number == 40:
                counts = await asyncio.gather(*(grab(session, base + "/plan") for _ in range(3)))
                print("plans", counts, flush=True)
        await asyncio.sleep(0.05)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
