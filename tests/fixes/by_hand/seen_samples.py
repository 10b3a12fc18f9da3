import time

seen = set()


def main():
    number = 0
    for epoch in range(30):
        for _ in range(6):
            seen.add(number.to_bytes(8, "big") * 40_000)
            number += 1
            time.sleep(0.003)
        seen.clear()
        print(f"epoch {epoch}: {number} samples", flush=True)


if __name__ == "__main__":
    main()
