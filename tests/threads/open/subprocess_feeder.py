"""A process keeps all data that ever flowed through it.
amoffat/sh#270
Starts a helper process that answers line by line and sends it work for the whole run."""
import json
import subprocess
import sys
import time


def helper():
    history = []
    for line in sys.stdin:
        values = json.loads(line)
        history.append(values)
        print(sum(values), flush=True)


class Helper:
    def __init__(self):
        self.child = subprocess.Popen([sys.executable, __file__, "helper"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, values):
        self.child.stdin.write(json.dumps(values) + "\n")
        self.child.stdin.flush()
        return int(self.child.stdout.readline())

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def main():
    worker = Helper()
    for number in range(150):
        total = worker.ask(list(range(number * 20_000 + 10_000, number * 20_000 + 20_000)))
        if number % 5 == 0:
            print(f"ask {number}: {total}", flush=True)
        time.sleep(0.035)
    worker.close()


if __name__ == "__main__":
    helper() if sys.argv[1:] == ["helper"] else main()
