"""Grows and says nothing: no round of a loop is known, so it is looked at by the clock."""
import time

kept = []
for _ in range(12):
    kept.append(bytearray(4 << 20))
    time.sleep(0.2)
