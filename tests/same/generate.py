"""Random programs that do what programs do to a process: fork, thread, signal, trace, exec, become a daemon, print much, play with gc, count descriptors.
program(seed) gives one: its files, its options and its arguments. The same seed gives the same program, and a program says and writes the same
in every run: nothing in it depends on time, addresses, or which of two comes first. Each is some scenes in a row and an end."""

import os
import random
import textwrap

HEAD = """\
import os, sys, time
def say(*words):
    print(*words)
    sys.stdout.flush()
def work(rounds, size, kept, pause=0.0):
    \"\"\"Rounds that allocate, keep some and print a line each.\"\"\"
    store = []
    total = 0
    for epoch in range(rounds):
        block = [bytes([epoch % 251]) * size for _ in range(16)]
        total += sum(part[0] for part in block)
        if kept:
            store.append(block[0])
        print("epoch %d: loss %.4f" % (epoch, 1.0 / (epoch + 1)))
        if pause:
            time.sleep(pause)
    return len(store), total
"""

SCENES = {}


def scene(function):
    SCENES[function.__name__] = function
    return function


def text(template, **values):
    return textwrap.dedent(template).strip("\n") % values


@scene
def rounds(r):
    return text("say(work(%(n)d, %(size)d, %(kept)s, %(pause)s))", n=r.randint(8, 30), size=r.choice((100, 3000, 70000)), kept=r.random() < 0.6, pause=r.choice((0, 0.01, 0.03)))


@scene
def children(r):
    return text("""
        codes = []
        for number in range(%(n)d):
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                block = [bytes(%(size)d) for _ in range(20)]
                work(3, 2000, True)
                sys.stdout.flush()
                os._exit(number %% 7)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            data = [bytearray(%(size)d) for _ in range(5)]
        say("children", codes)
        """, n=r.randint(2, 12), size=r.choice((200, 5000, 300000)))


@scene
def grandchildren(r):
    return text("""
        sys.stdout.flush()
        def descend(depth):
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                kept = [bytes(30000) for _ in range(40)]
                code = descend(depth - 1) if depth else 3
                os._exit(code + 1)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        say("deep", descend(%(depth)d))
        """, depth=r.randint(1, 4))


@scene
def forking_threads(r):
    return text("""
        import threading, warnings
        warnings.simplefilter("ignore")
        sys.stdout.flush()
        codes = []
        def forks(number):
            for turn in range(%(turns)d):
                pid = os.fork()
                if pid == 0:
                    kept = [bytes(4000) for _ in range(50)]
                    os._exit(number)
                codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        busy = True
        def allocates():
            while busy:
                [bytes(100000) for _ in range(20)]
        others = [threading.Thread(target=allocates) for _ in range(%(others)d)]
        threads = [threading.Thread(target=forks, args=(i,)) for i in range(%(n)d)]
        for thread in others + threads: thread.start()
        for thread in threads: thread.join()
        busy = False
        for thread in others: thread.join()
        say("threads forked", sorted(codes))
        """, turns=r.randint(1, 5), others=r.randint(0, 2), n=r.randint(1, 4))


@scene
def fork_each_round(r):
    return text("""
        failed = 0
        for epoch in range(%(n)d):
            kept = [bytes(50000) for _ in range(10)]
            print("epoch %%d done" %% epoch)
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                more = [bytes(50000) for _ in range(10)]
                sys.exit(0) if epoch %% 2 else os._exit(0)
            failed += os.waitpid(pid, 0)[1] != 0
        say("failed", failed)
        """, n=r.randint(5, 25))


@scene
def daemon(r):
    return text("""
        sys.stdout.flush()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                work_done = sum(len(bytes(10000)) for _ in range(200))
                with open("daemon.part", "w") as file:
                    file.write("daemon %%d %%s" %% (work_done, os.path.basename(os.getcwd())))
                os.rename("daemon.part", "daemon%(tag)d.txt")
                os._exit(0)
            os._exit(0)
        os.wait()
        for _ in range(1000):
            if os.path.exists("daemon%(tag)d.txt"): break
            time.sleep(0.01)
        say("daemon wrote", open("daemon%(tag)d.txt").read())
        """, tag=r.randint(0, 9999))


@scene
def execs(r):
    how = r.choice(("execv", "execve", "execvp", "posix_spawn", "spawnv"))
    call = {
        "execv": "os.execv(sys.executable, words)",
        "execve": "os.execve(sys.executable, words, dict(os.environ, POND='still'))",
        "execvp": "os.execvp(sys.executable, words)",
    }.get(how)
    if call:
        return text("""
            sys.stdout.flush()
            words = [sys.executable, "-c", "import sys, os; print('became', sys.argv[1:], os.environ.get('POND')); x = [bytes(9999) for _ in range(99)]; sys.exit(%(code)d)", "a b", "c"]
            pid = os.fork()
            if pid == 0:
                %(call)s
            say("exec", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            """, code=r.randint(0, 99), call=call)
    if how == "spawnv":
        return text("""
            sys.stdout.flush()
            say("spawn", os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", "print('spawned'); raise SystemExit(%(code)d)"]))
            """, code=r.randint(0, 99))
    return text("""
        sys.stdout.flush()
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", "echo from sh; exit %(code)d"], os.environ)
        say("posix_spawn", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """, code=r.randint(0, 99))


@scene
def subprocesses(r):
    return text("""
        import subprocess
        sys.stdout.flush()
        done = subprocess.run([sys.executable, "-c", "import sys; print(sum(len(bytes(i)) for i in range(%(n)d))); print('err', file=sys.stderr); sys.exit(%(code)d)"],
                              capture_output=True, text=True)
        say("run", done.returncode, repr(done.stdout), repr(done.stderr))
        say("shell", subprocess.run("echo one two | tr a-z A-Z; exit %(code)d", shell=True, stdout=subprocess.PIPE).stdout)
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
            say("cat", len(cat.communicate(b"x" * %(n)d)[0]))
        say("missing", subprocess.run(["sh", "-c", "kill -9 $$"]).returncode, os.system("exit %(code)d") >> 8)
        say("env", subprocess.run(["sh", "-c", "echo $POND-$HOME"], env={"POND": "p", "HOME": "h", "PATH": os.environ["PATH"]}, stdout=subprocess.PIPE).stdout)
        """, n=r.randint(10, 3000), code=r.randint(0, 99))


@scene
def signals(r):
    return text("""
        import signal
        got = []
        def handler(number, frame):
            got.append((number, frame.f_code.co_name))
        old = signal.signal(signal.SIGUSR1, handler)
        def outer():
            for _ in range(%(n)d):
                os.kill(os.getpid(), signal.SIGUSR1)
                [bytes(1000) for _ in range(100)]
        outer()
        signal.signal(signal.SIGUSR1, old)
        say("signals", got)
        class Late(Exception): pass
        def late(number, frame):
            raise Late("too late")
        signal.signal(signal.SIGALRM, late)
        caught = 0
        sink = open(os.devnull, "w")
        for _ in range(%(alarms)d):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            try:
                while True:
                    print("waiting 1 2 3", end="", file=sink)
                    [bytes(500) for _ in range(500)]
            except Late:
                caught += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        sink.close()
        say("alarms", caught, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        say("masks", signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getsignal(signal.SIGPIPE), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGCHLD))
        """, n=r.randint(1, 40), alarms=r.randint(1, 4))


@scene
def alarm_among_prints(r):
    return text("""
        import signal, threading
        class Stop(Exception): pass
        def stop(number, frame):
            raise Stop
        signal.signal(signal.SIGALRM, stop)
        sink = open(os.devnull, "w")
        stops, busy = 0, True
        def allocates():
            while busy: [bytes(3000) for _ in range(50)]
        others = [threading.Thread(target=allocates) for _ in range(%(others)d)]
        for thread in others: thread.start()
        for turn in range(%(n)d):
            real = sys.stdout
            try:
                try:
                    sys.stdout = sink
                    signal.setitimer(signal.ITIMER_REAL, 0.013)
                    for step in range(10 ** 9):
                        print("step", step, "of", turn)
                finally:
                    sys.stdout = real
            except Stop:
                stops += 1
        busy = False
        for thread in others: thread.join()
        sink.close()
        say("stops", stops)
        """, n=r.randint(3, 20), others=r.choice((0, 0, 1, 2)))


@scene
def signal_to_group(r):
    return text("""
        import signal
        got = []
        signal.signal(signal.%(name)s, lambda number, frame: got.append(number))
        os.killpg(os.getpgrp(), signal.%(name)s)
        for _ in range(25):
            time.sleep(0.01)
        say("group", got)
        signal.signal(signal.%(name)s, signal.SIG_DFL)
        """, name=r.choice(("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGINT")))


@scene
def children_by_signal(r):
    return text("""
        import signal
        codes = []
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR2):
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                import resource
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                kept = [bytes(20000) for _ in range(%(n)d)]
                signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
                os.kill(os.getpid(), number)
                os._exit(0)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        say("ended by", codes)
        """, n=r.randint(1, 50))


@scene
def tracing(r):
    return text("""
        events = []
        def tracer(frame, event, arg):
            if "<frozen" in frame.f_code.co_filename: return tracer
            if frame.f_code.co_filename != __file__: events.append(("elsewhere", frame.f_code.co_filename[-30:], frame.f_code.co_name))
            events.append((event, frame.f_code.co_name, frame.f_lineno))
            if len(frame.f_locals) > 50: events.append("many")
            return tracer
        def traced(n):
            first, second = [], {}
            for epoch in range(n):
                value = bytes(30000)
                first.append(value)
                second[epoch] = len(first)
                print("epoch %%d of traced" %% epoch)
                if epoch %% 5 == 4: time.sleep(%(pause)s)
                value = None
            return len(first), second[n - 1], value
        sys.settrace(tracer)
        try:
            result = traced(%(n)d)
            import %(module)s
        finally:
            sys.settrace(None)
        say("traced", result, len(events), hash(tuple(events)))
        if %(show)s: say("elsewhere", sorted({event for event in events if event[0] == "elsewhere"}))
        """, n=r.randint(6, 25), pause=r.choice((0, 0.1, 0.2)), module=r.choice(("token_", "opcode_")), show=True)


@scene
def profiling(r):
    return text("""
        from collections import Counter
        seen = Counter()
        def profiler(frame, event, arg):
            name = arg.__name__ if event.startswith("c_") else frame.f_code.co_name
            seen[event, name] += 1
        def profiled(n):
            kept = []
            for epoch in range(n):
                kept.append(sorted([bytes(9000), b"a"])[0])
                print("epoch", epoch, "profiled")
            return len(kept)
        sys.setprofile(profiler)
        count = profiled(%(n)d)
        sys.setprofile(None)
        say("profiled", count, sorted(seen.items()))
        """, n=r.randint(5, 40))


@scene
def threads(r):
    return text("""
        import threading, queue
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(%(n)d) as pool:
            say("pool", list(pool.map(lambda i: sum(len(bytes(i * 50)) for _ in range(30)), range(40))))
        results = queue.Queue()
        def one(number):
            local = [bytes(number * 10) for _ in range(100)]
            print("", end="")
            results.put((number, len(local), threading.current_thread().name))
        for number in range(%(n)d):
            thread = threading.Thread(target=one, args=(number,), name="t%%d" %% number)
            thread.start()
            thread.join()
        say("threads", [results.get() for _ in range(%(n)d)], threading.active_count(), threading.main_thread().name)
        """, n=r.randint(1, 8))


@scene
def processes(r):
    method = r.choice(("fork", "spawn", "forkserver"))
    return text("""
        import multiprocessing, helper
        if __name__ == "__main__":
            sys.stdout.flush()
            context = multiprocessing.get_context("%(method)s")
            with context.Pool(%(n)d) as pool:
                say("pool", pool.map(helper.square, range(%(jobs)d)))
            children = [context.Process(target=helper.ends, args=(code,)) for code in range(%(n)d)]
            for child in children: child.start()
            for child in children: child.join()
            say("exit codes", [child.exitcode for child in children])
        """, method=method, n=r.randint(1, 3), jobs=r.randint(1, 30))


@scene
def collector(r):
    return text("""
        import gc, weakref
        gc.collect()
        gc.disable()
        class Node: pass
        def circle():
            a, b = Node(), Node()
            a.other, b.other = b, a
            a.data = bytes(%(size)d)
            return weakref.ref(a)
        references = []
        for epoch in range(%(n)d):
            references.append(circle())
            kept = [bytes(60000) for _ in range(20)]
            print("epoch %%d" %% epoch)
            time.sleep(0.03)
        say("alive", sum(reference() is not None for reference in references), gc.isenabled())
        say("found", gc.collect() > 0, sum(reference() is not None for reference in references))
        gc.enable()
        calls = []
        callback = lambda phase, info: calls.append((phase, info["generation"]))
        gc.callbacks.append(callback)
        threshold = gc.get_threshold()
        gc.set_threshold(100000, 50, 50)
        for epoch in range(5):
            print("epoch %%d again" %% epoch)
            gc.collect(1)
            time.sleep(0.05)
        gc.callbacks.remove(callback)
        gc.set_threshold(*threshold)
        say("callbacks", calls, threshold, gc.get_debug())
        """, n=r.randint(10, 32), size=r.choice((100, 40000)))


@scene
def frozen(r):
    return text("""
        import gc
        gc.disable()
        gc.collect()
        before = gc.get_freeze_count()
        gc.freeze()
        say("frozen", before, gc.get_freeze_count() > 0)
        count = gc.get_freeze_count()
        for epoch in range(%(n)d):
            kept = [bytes(90000) for _ in range(10)]
            print("epoch %%d" %% epoch)
            time.sleep(0.03)
        say("still", gc.get_freeze_count() > count // 2, gc.isenabled())
        gc.unfreeze()
        gc.enable()
        """, n=r.randint(5, 24))


@scene
def descriptors(r):
    return text("""
        def open_now():
            return sorted(int(name) for name in os.listdir("/proc/self/fd"))
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


ENDS = (
    ("", 6),
    ("sys.exit(%(code)d)", 3),
    ("sys.exit('said %(code)d')", 1),
    ("raise RuntimeError('ends here %(code)d')", 2),
    ("def last(n):\n    return 1 // n\nlast(0)", 1),
    ("sys.stdout.flush()\nos._exit(%(code)d)", 2),
    ("sys.stdout.flush()\nimport signal\nos.kill(os.getpid(), signal.SIGKILL)", 1),
    ("sys.stdout.flush()\nimport signal\nsignal.signal(signal.SIGTERM, signal.SIG_DFL)\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(9)", 1),
    ("sys.stdout.flush()\nimport signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)", 1),
    ("sys.stdout.flush()\nos.execv(sys.executable, [sys.executable, '-c', 'import sys; print(1234); sys.exit(%(code)d)'])", 1),
    ("import threading\nthreading.Thread(target=lambda: (time.sleep(0.05), print('thread outlives', %(code)d))).start()", 1),
)
OPTIONS = (([], 10), (["-u"], 2), (["-O"], 1), (["-B"], 1), (["-X", "dev"], 1), (["-W", "error"], 1), (["-X", "faulthandler"], 1), (["-I"], 1), (["-s"], 1),
           (["-m", "trace", "--trace", "--ignore-dir=/usr:/root:/opt:/home"], 1), (["-m", "trace", "--count", "--coverdir=cover", "--missing"], 1), (["-m", "cProfile", "-o", "profile.bin"], 0))
ENVIRONMENTS = (({}, 8), ({"PYTHONMALLOC": "malloc"}, 1), ({"PYTHONMALLOC": "debug"}, 1), ({"PYTHONUNBUFFERED": "1"}, 1), ({"PYTHONTRACEMALLOC": "1"}, 1),
                ({"MILLPOND_INTERVAL": "3000"}, 4), ({"PYTHONPATH": "own"}, 1), ({"PYTHONDONTWRITEBYTECODE": "1"}, 1))

HELPER = """\
import os
def square(x):
    kept = [bytes(1000) for _ in range(100)]
    return x * x + len(kept)
def ends(code):
    kept = [bytes(30000) for _ in range(30)]
    os._exit(code)
"""

QUIET_UNDER_TRACE = {"rounds", "children", "variables", "files", "exceptions", "descriptors", "at_exit", "streams", "logs", "subprocesses"}


def _pick(r, weighted):
    return r.choices([value for value, _ in weighted], [weight for _, weight in weighted])[0]


class Program:
    def __init__(self, seed, files, options, arguments, environment, scenes):
        self.seed, self.files, self.options, self.arguments = seed, files, options, arguments
        self.environment, self.scenes = environment, scenes


def program(seed):
    r = random.Random("same %s" % seed)
    options = list(_pick(r, OPTIONS))
    names = sorted(SCENES)
    if "trace" in options:
        names = sorted(QUIET_UNDER_TRACE)
    chosen = r.sample(names, r.randint(2, 5))
    if "-W" in options:
        chosen = [name for name in chosen if name not in ("exceptions", "forking_threads", "fork_each_round", "threads", "processes")] or ["rounds"]
    if "-I" in options:  # no sitecustomize, so no agent that could hide our variables from os.environ; they must be there for the children
        chosen = [name for name in chosen if name != "surroundings"] or ["rounds"]
    environment = dict(_pick(r, ENVIRONMENTS))
    parts = [HEAD]
    for name in chosen:
        parts.append("# " + name)
        parts.append(SCENES[name](r))
    if r.random() < 0.7:
        parts.append("say(work(%d, %d, True, 0.04))" % (r.randint(10, 22), r.choice((2000, 90000))))
    parts.append(_pick(r, ENDS) % {"code": r.randint(1, 120)})
    main = "\n".join(parts) + "\n"
    if "processes" in chosen:
        # what a spawned child imports again must do nothing
        lines = main.splitlines()
        head = HEAD.count("\n")
        body = "\n".join(lines[:head]) + "\ndef main():\n    global __name__\n" + textwrap.indent("\n".join(lines[head:]), "    ")
        main = body + "\nif __name__ == '__main__':\n    main()\n"
        main = main.replace("    global __name__\n", "")
    files = {"main.py": main, "helper.py": HELPER, "token_.py": "WHO = 'token'\n", "opcode_.py": "WHO = 'opcode'\n"}
    if r.random() < 0.2:
        files["json.py"] = "WHO = 'mine'\ndef dump(value, file):\n    file.write(repr(value))\n"
    if environment.get("PYTHONPATH") == "own":
        files["own/queue_.py"] = "WHO = 'queue'\n"
        files["own/sitecustomize.py"] = "import sys\nsys.own_site = True\n"
    return Program(seed, files, options, ["--lr", "0.1"] if r.random() < 0.5 else [], environment, chosen)


if __name__ == "__main__":
    import sys

    made = program(int(sys.argv[1]))
    print("# seed", made.seed, made.options, made.environment, made.scenes)
    print(made.files["main.py"])
