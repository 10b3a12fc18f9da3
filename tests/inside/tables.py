"""What a probe that was here must have left as it was, read by this process of itself: the words of every relocation table and how their pages are protected, Python's
allocators, threads, descriptors, files, mappings, and the objects that an agent could have replaced."""
import builtins
import ctypes
import logging
import os
import signal
import struct
import sys
import threading

kJumpSlot, kGlobDat, kPointer = 7, 6, 1
FAMILY = ("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc", "mmap", "mmap64", "munmap", "mremap")


def _mappings():
    with open("/proc/self/maps") as file:
        for line in file:
            words = line.split(None, 5)
            begin, end = (int(part, 16) for part in words[0].split("-"))
            yield begin, end, words[1], int(words[2], 16), words[5].strip() if len(words) > 5 else ""


def _relocations(path):
    """(offset in memory, type, name of the symbol) of each, and the address of the first page, as the file says."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] != b"\x7fELF":
        return 0, []
    kind, = struct.unpack_from("<H", data, 16)
    headers_at, sections_at = struct.unpack_from("<QQ", data, 32)
    header_size, headers, section_size, sections = struct.unpack_from("<HHHH", data, 54)
    first = next((struct.unpack_from("<Q", data, headers_at + i * header_size + 16)[0] for i in range(headers) if struct.unpack_from("<I", data, headers_at + i * header_size)[0] == 1), 0)
    table = [struct.unpack_from("<IIQQQQIIQQ", data, sections_at + i * section_size) for i in range(sections)]
    symbols = next((section for section in table if section[1] == 11), None)
    if symbols is None:
        return first, []
    texts = table[symbols[6]][4]
    found = []
    for section in table:
        if section[1] != 4:
            continue
        for offset, info, _ in struct.iter_unpack("<QQq", data[section[4]:section[4] + section[5]]):
            if info & 0xffffffff in (kJumpSlot, kGlobDat, kPointer) and info >> 32:
                name_at = texts + struct.unpack_from("<I", data, symbols[4] + (info >> 32) * 24)[0]
                found.append((offset, info & 0xffffffff, data[name_at:data.index(b"\0", name_at)].decode()))
    return first, found


def words(names=None):
    """(module, name, type, offset) -> (value, protection of the page), of all modules but the probe, the loader and the kernel's."""
    mapped = list(_mappings())
    result = {}
    done = set()
    for begin, _, _, offset, path in mapped:
        if offset or not path.startswith("/") or path in done or "libmillpond" in path or "/ld-" in path or not os.path.isfile(path):
            continue
        done.add(path)
        first, relocations = _relocations(path)
        base = begin - first
        for at, kind, name in relocations:
            if (names is not None and name not in names) or (kind == kPointer and name not in FAMILY):
                continue  # other pointers are data of the program's, which change
            place = base + at
            flags = next((flags for low, high, flags, _, _ in mapped if low <= place < high), None)
            if flags is not None and flags[0] == "r":
                result[path, name, kind, at] = (ctypes.c_uint64.from_address(place).value, flags)
    return result


class _Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


def allocators():
    found = []
    for domain in range(3):
        allocator = _Allocator()
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(allocator))
        found.append(tuple(getattr(allocator, name) for name, _ in _Allocator._fields_))
    arena = (ctypes.c_void_p * 3)()
    ctypes.pythonapi.PyObject_GetArenaAllocator(arena)
    return found + [tuple(arena)]


def traces():
    """Threads, descriptors, timers, and what of ours is mapped or lies in shared memory."""
    with open("/proc/self/timers") as file:
        timers = file.read()
    return {"threads": len(os.listdir("/proc/self/task")), "descriptors": sorted(fd for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd)), "timers": timers,
            "interval timers": [signal.getitimer(which) for which in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)],
            "mapped": sorted({path for _, _, _, _, path in _mappings() if ".probe" in path or "millpond-" in path})}


# For a program whose own memory is all in the heap, so that mappings() of it stay as they are: a mapping that comes is somebody else's.
ONE_HEAP = {"PYTHONMALLOC": "malloc", "MALLOC_MMAP_MAX_": "0", "MALLOC_ARENA_MAX": "1", "MALLOC_TOP_PAD_": "1048576"}


def mappings():
    """Every mapping that has no file behind it, but for the heap, the stack and what lies right behind a module: the end of its data that its file does not hold."""
    found, before = set(), (0, "")
    for begin, end, flags, _, path in _mappings():
        if "millpond-" in path or (not path and not (before[0] == begin and before[1].startswith("/"))):
            found.add("%x-%x %s %s" % (begin, end, flags, path))
        before = (end, path)
    return found


def objects():
    """Names of what an agent could have replaced, to the objects themselves."""
    found = {"print": builtins.print, "import": builtins.__import__, "excepthook": sys.excepthook, "unraisablehook": sys.unraisablehook, "displayhook": sys.displayhook,
             "threading.excepthook": threading.excepthook, "stdout": sys.stdout, "stderr": sys.stderr, "stdout.write": getattr(sys.stdout, "__dict__", {}).get("write"),
             "callHandlers": logging.Logger.callHandlers, "CDLL.__getitem__": ctypes.CDLL.__getitem__, "trace": sys.gettrace(), "profile": sys.getprofile(),
             "meta_path": list(sys.meta_path), "path": list(sys.path), "path_hooks": list(sys.path_hooks), "environment": dict(os.environ),
             "SIGCHLD": signal.getsignal(signal.SIGCHLD), "SIGINT": signal.getsignal(signal.SIGINT)}
    found.update({"module " + name: module for name, module in sys.modules.items() if not name.startswith("millpond")})
    return found


def differences(before, after):
    """What is not the same object any more, or another value of a number, a list, a dictionary."""
    wrong = []
    for name, was in before.items():
        now = after.get(name, "gone")
        same = now == was if isinstance(was, (int, list, dict, str)) else now is was
        if not same:
            wrong.append("%s: %r before, %r after" % (name, was, now))
    return wrong
