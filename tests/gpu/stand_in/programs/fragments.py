"""Requests that grow, each beside a small block that stays: no gap is large enough for the next one."""
import time

import torch


def main():
    pins = []
    for epoch in range(40):
        big = torch.zeros((20 << 20) + epoch * (1 << 20))
        pin = torch.zeros(1 << 10)
        del big
        big = torch.zeros(19 << 20)
        pins = (pins + [pin, torch.zeros(512)])[-80:]
        del big
        print("epoch %d" % epoch, flush=True)
        time.sleep(0.2)


main()
