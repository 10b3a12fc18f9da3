"""Loading many addresses with aiohttp costs memory that never comes back.
aio-libs/aiohttp#4618
A crawler fetches pages from a local aiohttp server with a few workers and counts what it found."""
import asyncio
import collections

from aiohttp import ClientSession, web

PAGES, WORKERS = 400, 4


async def page(request):
    await asyncio.sleep(0.07)
    number = int(request.match_info["number"])
    return web.Response(text=f"<p>{number}</p>" + "lorem ipsum %d " % number * 10_000)


async def serve():
    app = web.Application()
    app.router.add_get("/page/{number}", page)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, site._server.sockets[0].getsockname()[1]


class Crawler:
    def __init__(self, base):
        self.base = base
        self.todo = collections.deque(range(PAGES))
        self.found = {}

    async def worker(self, session):
        while self.todo:
            number = self.todo.popleft()
            async with session.get(f"{self.base}/page/{number}") as response:
                text = await response.text()
            self.found[number] = (len(text.split()), text)


async def main():
    runner, port = await serve()
    crawler = Crawler(f"http://127.0.0.1:{port}")
    async with ClientSession() as session:
        await asyncio.gather(*(crawler.worker(session) for _ in range(WORKERS)))
    print(sum(words for words, _ in crawler.found.values()))
    await runner.cleanup()


asyncio.run(main())
