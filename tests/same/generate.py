"""Random programs that do what programs do to a process: fork, thread, signal, trace, exec, become a daemon, print much, play with gc, count descriptors.
program(seed) gives one: its files, its options and its arguments. The same seed gives the same program, and a program says and writes the same
in every run: nothing in it depends on time, addresses, or which of two comes first. Each is some scenes in a row and an end."""

import os
import random
import textwrap

from scenes import SCENES

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
def join(threads):
    \"\"\"Until they are gone for the system too: a fork warns of those that it still has, which Python before 3.13 does not wait for.\"\"\"
    for thread in threads: thread.join()
    while len(os.listdir("/proc/self/task")) > 1: time.sleep(0.001)
"""

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
        names = sorted(QUIET_UNDER_TRACE - ({"children"} if "--trace" in options else set()))  # parent and child both say what they do, and whose word is first is chance
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
