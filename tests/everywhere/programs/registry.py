"""A library's table keeps what the program gives to it: handlers of a logger, functions to be called at the end."""
import atexit
import logging
import sys
import time

import known

what = sys.argv[1]
logger = logging.getLogger("training")


def say_goodbye(results):
    results.clear()


for epoch in range(60):
    results = bytearray(b"x" * 400_000)  # born
    if what == "logging":
        handler = logging.Handler()
        handler.results = results
        logger.addHandler(handler)  # keeps logging
    else:
        atexit.register(say_goodbye, results)  # keeps atexit
    known.kept(400_000 * (epoch + 1), call=epoch + 1, epoch=epoch + 1)
    time.sleep(0.08)
    print("epoch", epoch, flush=True)
