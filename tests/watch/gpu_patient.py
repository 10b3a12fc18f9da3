#!/usr/bin/env python3
"""Takes GPU memory in steps that are known, through the driver alone (libcuda.so.1): gpu_patient.py [--steps 16] [--mib 64] [--seconds 1].

    millpond watch --json - --quiet -- python3 tests/watch/gpu_patient.py --steps 16

What CUDA's context takes comes before the first step. Says on every line what it holds, and ends with 77 where there is no GPU."""
import argparse
import ctypes
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=16)
parser.add_argument("--mib", type=int, default=64, help="of one step")
parser.add_argument("--seconds", type=float, default=1, help="between steps")
parser.add_argument("--flat", action="store_true", help="gives back what the step before took")
arguments = parser.parse_args()

try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    print(error, file=sys.stderr)
    sys.exit(77)


def call(name, *values):
    code = getattr(cuda, name)(*values)
    if code:
        print(f"{name} says {code}", file=sys.stderr)
        sys.exit(77 if name == "cuInit" else 1)


device, context = ctypes.c_int(), ctypes.c_void_p()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
last = None
for step in range(1, arguments.steps + 1):
    block = ctypes.c_uint64()
    if arguments.flat and last:
        call("cuMemFree_v2", last)
    call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(arguments.mib << 20))
    last = block
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    held = arguments.mib * (1 if arguments.flat else step)
    print(f"epoch {step}: {held} MiB held, {(total.value - free.value) >> 20} of {total.value >> 20} MiB of the device used", flush=True)
    time.sleep(arguments.seconds)
