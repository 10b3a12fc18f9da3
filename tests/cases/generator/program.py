"""Draws one program and its truth from a seed."""
import dataclasses
import random
import re

from . import frame, frameworks, truth
from .holders import HOLDERS
from .items import Item, draw_item
from .noise import NOISES, decoy, log_uniform
from .parts import Part, with_item, wrapped
from .text import Names, Scope, guarded, without_marks
from .work import model, work

PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
PAGE = 4096
MOST = 1.5e9  # bytes that the leaks of a program may keep together


@dataclasses.dataclass
class Shape:
    rounds: int
    steps: int
    rhythm: str
    process: str
    every: int = 1  # rounds for a printed line; 0: silent
    pause: float = 0.0  # seconds to sleep in each step
    paced: float = 0.0  # seconds that a round takes by the clock
    gap: float = 0.0  # seconds between two requests
    workers: int = 1
    seconds: float = 8.0


class Draw:
    """What a part needs to know to be drawn."""

    def __init__(self, rng, names, python, numpy, rounds, calls, room, rhythm="", environment=""):
        self.rhythm, self.environment = rhythm, environment
        self.rng, self.names, self.scope, self.python, self.numpy = rng, names, Scope(names), python, numpy
        self.rounds, self.steps, self.room = rounds, calls, room
        self.calls = rounds * calls
        self.churn = 2e9 / self.calls  # bytes that a call may make and drop, so that a run has time for them

    def item(self, size, kinds=None, each=1):
        """Something of about that size, made `each` times a call, or of what there is time for."""
        item = draw_item(self.rng, self.scope, self.python, self.numpy, min(size, self.churn / each), kinds, self.calls * each)
        item.seconds *= each
        return item

    def possible(self, holders):
        """Those that this Python can run, with their weights."""
        good = [holder for holder in holders if (self.numpy or "import numpy as np" not in holder.imports) and holder.only in ("", self.rhythm, self.environment)]
        return good, [holder.weight for holder in good]


@dataclasses.dataclass
class Program:
    name: str
    files: dict
    truth: dict


def window(rng, rounds, kind):
    """From which round on and until which something is kept: [first, stop)."""
    if kind == "leak":
        first = rng.choice([0, 0, 0, rng.randint(0, rounds - 6), rng.randint(rounds // 2, rounds - 6)])
        return first, rounds
    if kind == "late":
        return rng.randint(rounds - 5, rounds - 2), rounds
    first = rng.choice([0, 0, rng.randint(0, max(0, rounds - 9))])
    return first, rng.randint(first + 2, rounds - 1 if rng.random() < 0.1 else max(first + 2, rounds - 6))


def leak_part(draw, shape, kind, number, avoid):
    """A holder without a bound, and what is kept in it in each round of its window."""
    rng, scope = draw.rng, draw.scope
    more = frameworks.EXTRA.get(draw.numpy, []) + (frameworks.EXTRA[frameworks.TENSORFLOW] if draw.numpy == frameworks.KERAS else [])
    holders, weights = draw.possible([holder for holder in HOLDERS + more if holder.kind not in avoid and (holder.own is not frameworks.unknown or (
        kind == "leak" and shape.rounds * holder.seconds < 10 and shape.rounds * shape.steps >= 40))])
    holder = rng.choices(holders, weights)[0]
    first, stop = window(rng, shape.rounds, kind) if shape.workers == 1 or shape.rhythm == "loader" else (0, shape.rounds)
    per_step = shape.steps > 1 and rng.random() < 0.5
    many = 1
    if holder.own is frameworks.unknown:  # what a call keeps is not known by construction; there must be enough of them, and time for them
        first, stop = 0, shape.rounds
        per_step = shape.steps > 1 and shape.rounds * shape.steps * holder.seconds < 15 and (per_step or shape.rounds < 40)
    calls = (shape.steps if per_step else 1) * shape.workers
    per_round = min(log_uniform(rng, 1e4, 1e8), min(draw.room, holder.total) / max(1, stop - first), holder.largest * calls)
    if holder.own is None or holder.own is frameworks.layer_output:
        many = rng.choice([1, 1, 2, 5, 12]) if holder.many and per_round / calls > 3000 else 1
    size = max(64, per_round / calls / many)
    takes = holder.takes
    rounded = 1
    if holder.own:
        values, each, what = holder.own(rng, size)
        item = Item(what, "", lambda i: each or 0, seconds=holder.seconds + (each or 0) * 5e-9)
    elif takes in (("mapped bytes",), ("nonzero bytes",)):
        n = max(64, int(size))
        if takes == ("mapped bytes",):
            rounded = PAGE
        item = Item("bytes", f"bytes([1 + «i» % 250]) * {n}", lambda i: -(-(n + (0 if rounded > 1 else 1)) // rounded) * rounded, seconds=n * 3e-9)
        values = {"n": n}
    else:
        item, values = draw_item(rng, scope, draw.python, draw.numpy, size, takes, (stop - first) * calls * many), {}
    part = Part(holder.kind, holder.imports, scope.fill(holder.top, **values), scope.fill(holder.begin, **values), scope.fill(holder.each, **values), scope.fill(holder.end))
    part = with_item(draw, item, part)
    if many > 1:
        loop = scope["n"]
        part.each = f"for {loop} in range({many}):\n    " + part.each.replace("«i»", f"(«i» * {many} + {loop})").replace("\n", "\n    ")
        part.seconds *= many
    if shape.rhythm not in ("server", "pool", "loader") and "self." not in part.each and rng.random() < 0.25:
        part = wrapped(scope, part, frame.state_names([part]))
    first_text = {0: ""}.get(first, f"«r» >= {first}" if stop >= shape.rounds else f"{first} <= «r» < {stop}")
    if first == 0 and stop < shape.rounds:
        first_text = f"«r» < {stop}"
    rank = rng.randrange(4) if shape.process == "ranks" else None
    if rank is not None:
        first_text = f"os.environ.get(\"RANK\") == \"{rank}\"" + (f" and {first_text}" if first_text else "")
        part.imports += ("import os",)
    part.each = guarded(first_text, part.each)
    part.per_step = per_step
    part.seconds *= (stop - first) / shape.rounds
    calls_of = lambda r: range(r * calls * many, (r + 1) * calls * many)
    bytes_of = lambda r: sum(item.size(i) for i in calls_of(r))
    kept = [bytes_of(r) for r in range(first, stop)]
    last = kept[-max(1, min(len(kept), max(5, len(kept) // 2))):]
    known = holder.own is not frameworks.unknown
    part.leak = truth.Leak(number, holder, item.kind, first, stop, round(sum(last) / len(last)) if known else None, sum(kept) if known else None, calls * many, [scope[name] for name in holder.names] + list(holder.words), rank)
    return part


def draw_shape(rng, libs, quick):
    rounds = round(log_uniform(rng, 12, 40 if quick else 80 if "tensorflow" in libs else 200))
    process = rng.choices(["main", "thread", "fork", "process fork", "process spawn", "process forkserver", "pool fork", "pool spawn", "pool forkserver", "subprocess", "ranks"],
                          [12, 1.6, 0.9, 0.5, 0.5, 0.5, 0.4, 0.4, 0.4, 0.9, 0.7])[0]
    rhythm = rng.choices(["epochs", "models", "steps", "silent", "stream", "server"], [6, 1, 2, 2, 1.2, 1.2])[0]
    if len(libs) > 1:  # frameworks do not like to be forked, and take long to import
        process = process if process in ("thread", "subprocess") or (process == "process spawn" and "torch" in libs) else "main"
        rhythm = "keras fit" if "keras" in libs else rhythm if rhythm != "models" else "epochs"
        if "torch" in libs and rng.random() < 0.2:
            process, rhythm = "loader", "loader"
        elif rhythm == "keras fit":
            process = rng.choice(["main"] * 9 + ["subprocess"])
    if process.startswith("pool"):
        rhythm = "pool"
    elif rhythm == "server" and process not in ("main", "fork", "subprocess"):
        rhythm = "epochs"
    steps = 1 if rhythm in ("steps", "server", "pool", "stream") else rng.choice([1, 2, 4, 8, 20] if "tensorflow" not in libs else [2, 4, 8])
    if rhythm in ("steps", "server"):
        rounds = max(rounds, rng.randint(40, 60) if quick else rng.randint(60, 200))
    seconds = rng.uniform(2.5, 4.0) if quick else rng.uniform(3.0, 7.0) if "tensorflow" in libs else rng.uniform(5.0, 13.0)
    shape = Shape(rounds, steps, rhythm, process, seconds=seconds)
    shape.every = {"silent": 0, "steps": rng.choice([1, 5, 10]), "server": rng.choice([0, 1]), "pool": rng.choice([0, 1]), "stream": rng.choice([0, 0, 1])}.get(rhythm, rng.choices([1, 2, 5], [8, 1, 1])[0])
    if rounds // max(1, shape.every) < 12:
        shape.every = min(1, shape.every)
    if rhythm in ("pool", "loader") and rng.random() < 0.4:
        shape.workers = 2
    if rhythm == "keras fit":
        shape.every = rng.choice([0, 1, 1])
    return shape


def make(seed, number, quick=False):
    """The program of that number of a seed. quick: one of 3 s or so, of no framework."""
    rng = random.Random(f"{seed}/{number}")
    names = Names(rng)
    choices = frameworks.WEIGHTS[:2] if quick else frameworks.WEIGHTS
    libs = rng.choices([libs for libs, _ in choices], [weight for _, weight in choices])[0]
    python = frameworks.PYTHON.get(libs) or ("system" if libs and rng.random() < 0.5 else "peers" if libs else rng.choice(PYTHONS))
    version = "3.11" if libs else python
    numpy = libs
    shape = draw_shape(rng, libs, quick)
    ranks = 4 if shape.process == "ranks" else 1
    outcome = rng.choices(["leak", "stopped", "late", "none"], [52, 8, 3, 37])[0]
    leaks = [outcome] * (1 if outcome == "late" else rng.choices([1, 2, 3], [7, 2, 1])[0]) if outcome != "none" else []
    noises = rng.choices([0, 1, 2, 3], [3, 5, 3, 1] if leaks else [1, 5, 4, 2])[0]
    drawing = lambda room, calls=1: Draw(rng, names, version, numpy, shape.rounds, calls, room, shape.rhythm, python)
    parts, used = [], set()
    room = 3e8 if quick else MOST
    if shape.rhythm in ("server", "pool", "loader"):
        used.add("thread local")
    if len(libs) > 1:
        used.add("cycles with gc off")  # a framework has circles of its own
    for index, kind in enumerate(leaks):
        part = leak_part(drawing(room / len(leaks)), shape, kind, index, used)
        if part.name in ("cycles with gc off", "memory database", "warnings registry"):
            used.add(part.name)
        parts.append(part)
    for _ in range(noises):
        per_step = shape.steps > 1 and rng.random() < 0.4
        makers = [(maker, weight) for maker, weight in NOISES if (numpy or maker.__name__ != "growing_table") and not (maker.__name__ == "garbage" and any(part.name == "cycles with gc off" for part in parts))]
        maker = rng.choices([maker for maker, _ in makers], [weight for _, weight in makers])[0]
        part = maker(drawing(4e8 / ranks / shape.workers, shape.steps if per_step else 1))
        part.per_step = per_step
        parts.append(part)
    for _ in range(rng.choice([0, 1, 2, 3])):
        parts.append(decoy(drawing(1e8)))
    calls = shape.rounds * shape.steps
    busy = sum(part.seconds * (calls if part.per_step else shape.rounds) for part in parts)
    if shape.rhythm == "models":
        parts.append(model(drawing(1e8)))
    for _ in range(rng.choice([1, 1, 2]) if shape.rhythm not in ("keras fit", "loader") else 0):
        part = (frameworks.work if len(libs) > 1 else work)(drawing(1e8, shape.steps), rng.uniform(0.08, 0.3) * shape.seconds / calls / ranks)
        busy += part.seconds * calls
        parts.append(part)
    rest = max(0.4 * shape.seconds, shape.seconds - busy * max(1, ranks / 2))  # how long it takes to make things is an estimate, and much too long on a quick machine
    if shape.rhythm in ("silent", "stream"):
        shape.paced = max(shape.seconds, busy * 1.5) / shape.rounds
    elif shape.rhythm == "server":
        shape.gap = rest / shape.rounds
    else:
        shape.pause = rest / calls
    return assemble(rng, names, f"case_{number:04d}", shape, parts, python, version, libs)


def assemble(rng, names, name, shape, parts, python, version, libs):
    for index, part in enumerate(parts):
        number = lambda text: re.sub(r"#@(\w+)(?!:)\b", rf"#@\1:{index}", text)
        part.top, part.begin, part.each = number(part.top), number(part.begin), number(part.each)
    layout = rng.choice(["script", "function", "class", "namespace", "dict"])
    if shape.rhythm in ("server", "pool"):
        layout = rng.choice(["namespace", "dict"])
    elif shape.rhythm in ("keras fit", "loader"):
        layout = shape.rhythm
    elif shape.process not in ("main", "subprocess") and layout == "script":
        layout = "function"
    printed, pattern, imports = frame.progress(rng, names, shape)
    imports = [*imports, *([] if shape.paced or shape.pause < 0.0002 and not shape.gap else ["import time"]), *(["import time"] if shape.paced else []), *(["import types"] if layout == "namespace" else [])]
    files, tops = {}, []
    home = name + ".py"
    for part in parts:
        imports += part.imports if part.begin or part.each else ()
        if not part.top:
            continue
        if rng.random() < 0.15:
            module, line = frame.module_of(names, part)
            files[module + ".py"] = frame.file_text("", part.imports, [part.top])
            imports.append(line)
        else:
            imports += part.imports
            tops.append(part.top)
    rng.shuffle(tops)
    if shape.rhythm == "keras fit":
        text, entry, needed = frameworks.fit(rng, names, shape, parts)
        printed, pattern, imports = "", r"^\d+/\d+ - .*loss" if shape.every else None, [*imports, *needed]
    elif shape.rhythm == "loader":
        text, entry, needed = frameworks.loader(rng, names, shape, parts, printed)
        imports += needed
    else:
        text, entry = frame.run_text(rng, names, shape, parts, layout, printed)
    pieces = [*tops, text]
    if "logging.info(" in printed:
        pieces.insert(0, "logging.basicConfig(stream=sys.stdout, level=logging.INFO, format=\"%(message)s\")")
    process = shape.process
    if shape.rhythm == "server":
        more, main, needed = frame.server(rng, names, shape, entry)
        pieces.append(more)
        serve = names.draw("do_serve")
        pieces.append(f"def {serve}():\n" + frame.indent(main))
        imports += needed
        entry = serve
    if process == "subprocess":
        inner = names.draw("module")
        files[inner + ".py"] = frame.file_text(docstring(rng, names), imports, pieces + ([f"if __name__ == \"__main__\":\n    {entry}()"] if entry else []))
        child = names.draw("child")
        call = rng.choice([f"{child} = subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), \"{inner}.py\")])\nsys.exit({child}.returncode)",
                           f"{child} = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), \"{inner}.py\")])\nsys.exit({child}.wait())"])
        files[home] = frame.file_text(docstring(rng, names), ["import os", "import subprocess", "import sys"], [call])
    else:
        if entry:
            main, needed = frame.launch(rng, names, shape, entry, files)
            imports += needed
            pieces.append("if __name__ == \"__main__\":\n" + frame.indent(main))
        files[home] = frame.file_text(docstring(rng, names), imports, pieces)
    clean, marks = {}, {}
    for file, body in files.items():
        clean[file], found = without_marks(body)
        for key, lines in found.items():
            marks.setdefault(key, []).extend((file, line) for line in lines)
    told = truth.of(shape, parts, marks, pattern, python, version, layout, frameworks.NAMES[libs])
    told["name"] = name
    return Program(name, clean, told)


def docstring(rng, names):
    topic = rng.choice(["demand", "traffic", "weather", "routes", "prices", "signals", "queries", "tickets", "readings", "images", "reviews", "sessions"])
    return rng.choice(["", f'"""Fits a small model of {topic}."""', f'"""{topic.capitalize()}: second attempt, smaller steps."""', f"# {topic}, the nightly job", f'"""Reads {topic} and reports as it goes."""', f"# works on {topic}; see the notes of last week"])
