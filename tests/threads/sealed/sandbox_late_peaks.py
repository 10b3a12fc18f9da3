"""A long-lived host keeps the peaks of its runs although no Python object owns them.
SynaLinks/synalinks#102
Small jobs run one after another in threads; late in the run a few of them handle a large namespace."""
import json
import threading
import time


def job(size, results, number):
    namespace = {f"name{n}": [n, str(n) * 3, {"half": n / 2}] for n in range(size)}
    text = json.dumps(namespace)
    restored = json.loads(text)
    results[number % 20] = (len(text), restored["name1"])


def run(size, results, number):
    thread = threading.Thread(target=job, args=(size, results, number))
    thread.start()
    thread.join()


def main():
    results = {}
    for number in range(110):
        size = 60_000 if number in (75, 78, 81) else 1500
        run(size, results, number)
        time.sleep(0.05)
        if number % 5 == 4:
            print(f"run {number + 1}: {len(results)} results", flush=True)


if __name__ == "__main__":
    main()
