"""Scenes of what a program has around it: descriptors, streams, logs, files, variables, modules, native code, shared memory."""
from .scene import scene, text


@scene
def descriptors(r):
    return text("""
        def open_now():
            # but that of libffi 3.5 and newer, which opens its own file in whoever loads it, as the agent does
            return sorted(int(name) for name in os.listdir("/proc/self/fd") if "libffi" not in os.path.realpath("/proc/self/fd/" + name))
        say("descriptors", open_now())
        files = [open("file%%d.txt" %% i, "w") for i in range(%(n)d)]
        say("numbers", [file.fileno() for file in files])
        for file in files:
            print("line 1 of", file.name, file=file)
            file.close()
        read, write = os.pipe()
        os.write(write, b"through")
        say("pipe", read, write, os.read(read, 100))
        work(6, 20000, False)
        twin = os.dup(read)
        say("pipe", twin)
        for number in (read, write, twin): os.close(number)
        say("descriptors", open_now())
        """, n=r.randint(1, 20))


@scene
def no_descriptors(r):
    return text("""
        import resource
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (%(n)d, limits[1]))
        held = []
        try:
            while True: held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            say("full", error.errno, held[0], held[-1])
        failed = 0
        for epoch in range(%(rounds)d):
            kept = [bytes(60000) for _ in range(12)]
            print("epoch %%d without a descriptor" %% epoch)
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                more = [bytes(60000) for _ in range(12)]
                os._exit(0)
            failed += os.waitpid(pid, 0)[1] != 0
        for number in held: os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        say("failed", failed)
        """, n=r.randint(20, 80), rounds=r.randint(4, 12))


@scene
def streams(r):
    return text("""
        import io, contextlib
        say(type(print).__name__, print.__name__, print.__module__, repr(print), print.__self__.__name__)
        say(type(sys.stdout).__name__, sys.stdout.name, sys.stdout.encoding, sys.stdout.line_buffering, type(sys.stdout.write).__name__, sorted(vars(sys.stdout)))
        say(sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__, sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__)
        for epoch in range(%(n)d):
            sys.stdout.write("epoch %%d: written %%s\\n" %% (epoch, "x" * (epoch %% 7)))
        sys.stdout.writelines(["a\\n", "b\\n"])
        print("no newline", end="; ")
        print("parts", 1, 2.5, None, sep="|", flush=True)
        print("to stderr", epoch, file=sys.stderr, flush=True)
        inside = io.StringIO()
        with contextlib.redirect_stdout(inside):
            for i in range(10): print("redirected", i)
        say(len(inside.getvalue()))
        try:
            print("bad", nowhere=1)
        except TypeError as error:
            say("TypeError", "nowhere" in str(error))
        class Odd:
            def __str__(self):
                print("inner 1")
                return "odd"
        print(Odd(), [Odd.__name__])
        os.write(1, b"") and None
        """, n=r.randint(3, 200))


@scene
def many_prints(r):
    return text("""
        def log(*words):
            print(*words)
        for step in range(%(n)d):
            print("step", step, "loss", step / 8)
            if step %% 3 == 0: log("helper", step) if step %% 2 else log("other words %%d" %% step, "and", "more")
        sys.stdout.flush()
        """, n=r.randint(1000, 15000))


@scene
def logs(r):
    return text("""
        import logging
        logging.basicConfig(level=logging.INFO, format="%%(levelname)s %%(name)s %%(funcName)s %%(lineno)d %%(message)s", stream=sys.stdout, force=True)
        def train():
            for epoch in range(%(n)d):
                logging.info("epoch %%d loss %%.2f", epoch, 1 / (epoch + 1))
                logging.getLogger("deep.er").debug("not shown")
        train()
        sys.stdout.flush()
        """, n=r.randint(3, 100))


@scene
def exceptions(r):
    return text("""
        import traceback, warnings
        def inner(n):
            if n: return inner(n - 1)
            raise ValueError("deep %(n)d")
        try:
            try: inner(3)
            except ValueError as error: raise KeyError("outer") from error
        except KeyError:
            traceback.print_exc()
        def warns():
            warnings.warn("careful", stacklevel=2)
        warnings.simplefilter("always")
        warns()
        sys.stderr.flush()
        def bottomless(n):
            return bottomless(n + 1)
        try: bottomless(0)
        except RecursionError as error: say("recursion", type(error).__name__)
        class Late:
            def __del__(self): print("gone", %(n)d)
        Late()
        sys.stdout.flush()
        """, n=r.randint(0, 99))


@scene
def files(r):
    return text("""
        import tempfile, shutil, json
        folder = tempfile.mkdtemp(dir=".")
        for number in range(%(n)d):
            with open(os.path.join(folder, "part%%d" %% number), "wb") as file:
                file.write(bytes([number]) * %(size)d)
        say("files", sorted(os.listdir(folder)), oct(os.stat(os.path.join(folder, "part0")).st_mode))
        with open("result%(tag)d.json", "w") as file:
            json.dump({"sizes": [os.path.getsize(os.path.join(folder, name)) for name in sorted(os.listdir(folder))]}, file)
        shutil.rmtree(folder)
        """, n=r.randint(1, 9), size=r.randint(1, 9999), tag=r.randint(0, 999))


@scene
def at_exit(r):
    return text("""
        import atexit, weakref
        class Thing: pass
        thing%(tag)d = Thing()
        weakref.finalize(thing%(tag)d, print, "finalized %(tag)d")
        atexit.register(print, "at exit %(tag)d")
        @atexit.register
        def last():
            kept = [bytes(10000) for _ in range(100)]
            print("last words %(tag)d", len(kept))
        """, tag=r.randint(0, 9999))


@scene
def variables(r):
    return text("""
        def asks(n):
            first = locals()
            counter = 0
            items = []
            for epoch in range(n):
                counter += 1
                items.append(bytes(40000))
                print("epoch %%d asks" %% epoch)
                if epoch %% 6 == 5: time.sleep(0.05)
                now = locals()
                assert now["counter"] == counter == epoch + 1, (now["counter"], counter)
                now["counter"] = -1
            return sorted(first), counter, len(items), sorted(k for k in locals() if k != "now")
        say("locals", asks(%(n)d))
        def closure():
            count, cell = 0, [0]
            def up():
                nonlocal count
                count += 1
                cell[0] += count
                return locals().get("count"), eval("count")
            return [up() for _ in range(%(n)d)][-1], cell
        say("closure", closure())
        def generates():
            total = 0
            while True:
                got = yield total, sorted(locals())
                total += got
        generator = generates()
        next(generator)
        for epoch in range(%(n)d):
            print("epoch %%d of the generator" %% epoch)
            last = generator.send(epoch)
        say("generator", last, sorted(generator.gi_frame.f_locals))
        class Body:
            names = sorted(name for name in locals() if not name.startswith("__"))
            exec("made = 5")
        say("class", Body.names, Body.made)
        """, n=r.randint(3, 40))


@scene
def surroundings(r):
    return text("""
        import resource
        umask = os.umask(0o22); os.umask(umask)
        say("umask", umask, os.path.basename(os.getcwd()), [resource.getrlimit(limit) for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_STACK, resource.RLIMIT_CORE, resource.RLIMIT_AS)])
        say(sys.argv, [entry for entry in sys.path if "millpond" in entry or "inject" in entry], os.getpriority(os.PRIO_PROCESS, 0), __name__, sorted(vars())[:3])
        say(os.isatty(0), os.isatty(1), sys.flags, sys.getrecursionlimit(), sys.getswitchinterval(), sys.gettrace(), sys.getprofile())
        say(sorted(name for name in os.environ if "MILLPOND" in name or name in ("LD_PRELOAD", "PYTHONPATH")), len(os.environ))
        say(open("/proc/self/status").read().count("SigIgn"), [line for line in open("/proc/self/status") if line.startswith(("SigBlk", "SigIgn", "SigPnd", "ShdPnd"))])
        try:
            import sitecustomize
            say("sitecustomize", sitecustomize.__name__)
        except ImportError:
            say("no sitecustomize")
        import os as again, helper
        say(again is os, helper.__name__, sys.dont_write_bytecode)
        """)


@scene
def own_modules(r):
    return text("""
        import %(name)s
        say("own module", %(name)s.WHO)
        """, name=r.choice(("token_", "opcode_"))) if r.random() < 0.3 else text("""
        import json
        say("own json" if hasattr(json, "WHO") else "the library's json")
        """)


@scene
def coroutines(r):
    return text("""
        import asyncio
        async def one(number):
            for step in range(3):
                await asyncio.sleep(0)
                kept = bytes(50000)
            return number * number
        async def main():
            child = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(6 * 7)", stdout=asyncio.subprocess.PIPE)
            out, _ = await child.communicate()
            return sum(await asyncio.gather(*map(one, range(%(n)d)))), out, child.returncode
        sys.stdout.flush()
        say("asyncio", asyncio.run(main()))
        """, n=r.randint(1, 60))


@scene
def native(r):
    return text("""
        import ctypes, mmap
        library = ctypes.CDLL(None)
        library.malloc.restype = library.realloc.restype = library.calloc.restype = ctypes.c_void_p
        library.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        library.free.argtypes = [ctypes.c_void_p]
        blocks = [library.malloc(size) for size in range(1, %(n)d)]
        blocks = [library.realloc(block, 5000) for block in blocks]
        for block in blocks: ctypes.memset(block, 7, 5000)
        say("native", all(blocks), sum(ctypes.string_at(block, 5)[4] for block in blocks))
        for block in blocks: library.free(block)
        with mmap.mmap(-1, 1 << 20) as area:
            area[:5] = b"shared"[:5]
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                area[0:1] = b"S"
                os._exit(0)
            os.waitpid(pid, 0)
            say("mapping", area[:5])
        try: ctypes.CDLL(None).no_such_function_here
        except AttributeError as error: say("AttributeError", "no_such_function_here" in str(error))
        """, n=r.randint(2, 300))


@scene
def tracemallocs(r):
    return text("""
        import tracemalloc
        tracemalloc.start(%(n)d)
        kept = [bytes(1000) for _ in range(1000)]
        work(8, 5000, True)
        say("tracemalloc", tracemalloc.is_tracing(), tracemalloc.get_traced_memory()[0] > 1000000)
        tracemalloc.stop()
        del kept
        work(4, 5000, True)
        """, n=r.randint(1, 10))


@scene
def shared_memory(r):
    return text("""
        from multiprocessing import shared_memory
        block = shared_memory.SharedMemory(create=True, size=%(n)d)
        block.buf[:4] = b"pond"
        again = shared_memory.SharedMemory(name=block.name)
        say("shared memory", bytes(again.buf[:4]), block.size >= %(n)d)
        again.close()
        block.close()
        block.unlink()
        """, n=r.choice((4096, 100000, 3000000)))
