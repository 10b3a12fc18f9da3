"""A notifier that polls a web page for new items slows the computer down until it crashes.
psf/requests#4644
Polls a large listing again and again and remembers the items that it has already seen."""
import json
import random
import time

ListedItems = {}


def listing(rng, poll):
    """What the web service would answer: many old offers, some new ones."""
    offers = [{"id": n, "title": f"old offer {n}", "price": rng.randint(1, 500)} for n in range(rng.randint(5000, 30_000))]
    fresh = [{"id": f"new-{poll}-{n}", "title": rng.randbytes(1200).hex(), "price": rng.randint(1, 500)} for n in range(90)]
    return json.dumps(offers + fresh)


def check(poll, rng):
    items = json.loads(listing(rng, poll))
    found = 0
    for item in items:
        key = item["id"]
        if isinstance(key, str) and key not in ListedItems:
            ListedItems[key] = item
            found += 1
    return found, len(items)


rng = random.Random(55)
for poll in range(70):
    found, total = check(poll, rng)
    print(f"poll {poll}: {found} new of {total}", flush=True)
    time.sleep(0.04)
