"""Scenes of the interpreter: trace and profile functions, threads, pools, the collector."""
from .scene import scene, text


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
            join([thread])
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
