"""The dictionaries inside a signal grow with each connected receiver.
pallets-eco/blinker#12
Each request connects a receiver to a blinker signal to hear when its order is done."""
import time

from blinker import Signal

order_done = Signal("order-done")


class Request:
    def __init__(self, number):
        self.number = number
        self.items = [f"item-{number}-{n}" for n in range(900)]
        self.confirmed = False

    def on_done(self, sender, **details):
        if details.get("number") == self.number:
            self.confirmed = True


def handle(number):
    request = Request(number)
    order_done.connect(request.on_done, weak=False)
    order_done.send("shop", number=number)
    return len(request.items) if request.confirmed else 0


def main():
    sold = 0
    for number in range(240):
        sold += handle(number)
        time.sleep(0.025)
    print(sold)


if __name__ == "__main__":
    main()
