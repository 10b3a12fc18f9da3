"""Output that is captured from subprocesses stays in memory and makes the receiver grow.
ansible/ansibullbot#1388
Runs a command over and over, captures what it prints and keeps the finished calls in a log."""
import subprocess
import sys
import time

SCRIPT = "import random; random.seed({seed}); print('\\n'.join(str(random.random()) for _ in range(45000)))"


class Receiver:
    def __init__(self):
        self.calls = []

    def collect(self, seed):
        done = subprocess.run([sys.executable, "-S", "-c", SCRIPT.format(seed=seed)], capture_output=True, check=True)
        self.calls.append(done)
        return done.stdout.count(b"\n")


def main():
    receiver = Receiver()
    for poll in range(45):
        lines = receiver.collect(poll)
        print(f"poll {poll}: {lines} lines", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
