"""String-returning functions were declared as c_char_p; as c_void_p the pointer can be freed.
numba/llvmlite#470
Calls a C library that returns allocated strings and frees each after it was copied."""
import ctypes
import time

libc = ctypes.CDLL(None)
libc.strdup.argtypes = [ctypes.c_char_p]
libc.strdup.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]


def returned_string(pointer):
    try:
        return ctypes.cast(pointer, ctypes.c_char_p).value.decode()
    finally:
        libc.free(pointer)


def emit(function, lines):
    text = "\n".join(f"  %{n} = add i32 %{n - 1}, {function}" for n in range(1, lines))
    return returned_string(libc.strdup(text.encode()))


def main():
    longest = 0
    for module in range(70):
        for function in range(60):
            longest = max(longest, len(emit(function, 150)))
        print(f"module {module} {longest}", flush=True)
        time.sleep(0.08)


main()
