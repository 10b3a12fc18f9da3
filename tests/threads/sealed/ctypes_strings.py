"""Strings that a C function allocates and returns as c_char_p can no longer be freed.
krypton-byte/neonize#186
Calls a C library that returns newly allocated status strings, many times a second."""
import ctypes
import json
import time

libc = ctypes.CDLL(None)
libc.strdup.argtypes = [ctypes.c_char_p]
libc.strdup.restype = ctypes.c_char_p


def send(chat, text):
    packet = json.dumps({"chat": chat, "text": text, "state": "ok" * 600}).encode()
    status = libc.strdup(packet)
    return json.loads(status)


class Bot:
    def __init__(self):
        self.answered = 0

    def handle(self, event):
        answer = send(event % 50, f"hello number {event}")
        self.answered += answer["chat"] >= 0


def main():
    bot = Bot()
    for second in range(60):
        for event in range(250):
            bot.handle(second * 250 + event)
        time.sleep(0.08)
    print(bot.answered)


if __name__ == "__main__":
    main()
