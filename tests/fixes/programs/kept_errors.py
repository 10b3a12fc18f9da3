import time

failures = []


def check(row):
    window = bytearray(b"e") * 400_000
    if row % 2:
        raise ValueError(f"row {row} is broken")
    return len(window)


def main():
    row = 0
    for epoch in range(30):
        good = 0
        for _ in range(8):
            try:
                good += check(row) > 0
            except ValueError as error:
                failures.append((row, error))
            row += 1
            time.sleep(0.003)
        print(f"epoch {epoch}: {good} good, {len(failures)} broken, the last: {failures[-1][1]}", flush=True)


if __name__ == "__main__":
    main()
