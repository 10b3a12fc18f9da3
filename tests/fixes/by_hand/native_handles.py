import ctypes
import time

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def transform(size):
    work = libc.malloc(size)
    libc.memset(work, 1, size)
    libc.free(work)
    return size


def main():
    for epoch in range(30):
        done = 0
        for _ in range(6):
            done += transform(300_000)
            time.sleep(0.003)
        print(f"epoch {epoch}: {done}", flush=True)


if __name__ == "__main__":
    main()
