"""An exit handler held each connection; a weak method that unregisters itself lets it go.
ARM-software/devlib#679
Makes many short-lived sessions with an exit handler that knows them only weakly."""
import atexit
import os
import time
import weakref


class Session:
    def __init__(self, name):
        self.name = name
        self.log = os.urandom(700_000)
        method = weakref.WeakMethod(self.close, lambda ref: atexit.unregister(handler))

        def handler():
            close = method()
            if close is not None:
                close()

        atexit.register(handler)

    def digest(self):
        return sum(self.log[:1000])

    def close(self):
        self.log = b""


def main():
    digests = 0
    for number in range(220):
        session = Session(f"s{number}")
        digests += session.digest()
        time.sleep(0.025)
    print(digests)


if __name__ == "__main__":
    main()
