"""Metrics that carry a user's or key's id as a label grow with every new id.
BerriAI/litellm#12159
A gateway counts requests and observes latencies with prometheus_client while users come and go."""
import random
import time
import uuid

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

registry = CollectorRegistry()
REQUESTS = Counter("gateway_requests", "requests", ["route", "user"], registry=registry)
LATENCY = Histogram("gateway_latency_seconds", "latency", ["route", "user"], registry=registry)
ROUTES = ("/chat", "/embeddings", "/models")


def handle(user, rng):
    route = rng.choice(ROUTES)
    took = rng.expovariate(20)
    REQUESTS.labels(route=route, user=user).inc()
    LATENCY.labels(route=route, user=user).observe(took)


def main():
    rng = random.Random(8)
    for minute in range(50):
        for _ in range(60):
            user = str(uuid.UUID(int=rng.getrandbits(128)))
            handle(user, rng)
        if minute % 5 == 4:
            print("minute", minute + 1, flush=True)
        time.sleep(0.12)
    print(len(generate_latest(registry)))


if __name__ == "__main__":
    main()
