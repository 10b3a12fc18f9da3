import time

results = {}


def evaluate(key):
    return [key % 7 + i * 0.5 for i in range(9000)]


def main():
    key = 0
    for epoch in range(30):
        best = 0.0
        for _ in range(6):
            results[key] = evaluate(key)
            best = max(best, results[key][-1])
            key += 1
            time.sleep(0.003)
        print(f"epoch {epoch}: best {best:.1f}", flush=True)


if __name__ == "__main__":
    main()
