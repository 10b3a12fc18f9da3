import time
from collections import defaultdict, deque

windows = defaultdict(deque)


def main():
    for epoch in range(30):
        for k in range(8):
            name = "left" if k % 2 else "right"
            windows[name].append(b"w" * 220_000)
            time.sleep(0.003)
        print(f"epoch {epoch}: newest {len(windows['left'][-1])}", flush=True)


if __name__ == "__main__":
    main()
