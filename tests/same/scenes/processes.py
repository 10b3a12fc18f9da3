"""Scenes of processes: rounds of one, children that fork, thread, exec, become daemons, and signals."""
from .scene import scene, text


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
        join(others)
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
        join(others)
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
