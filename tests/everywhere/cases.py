"""The matrix: where memory can be kept, and what is right to say of it."""
import dataclasses
import glob
import os

ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.2*"}
DEBIAN = "/usr/bin/python3"
FORKY = os.environ.get("EVERYWHERE_FORKY", "")  # the folder of an unpacked Debian testing, which has the newest versions of Python


@dataclasses.dataclass
class Case:
    name: str
    program: str  # a file of programs
    arguments: tuple = ()
    python: str = ""  # "3.12", "torch" (one that has it), "" (the one that runs this), "none": a native program
    flags: tuple = ()  # of the compiler
    extension: str = ""  # a module in C that is built for it
    allocator: str = ""
    linked: bool = False  # the allocator is linked, not preloaded
    verdicts: tuple = ("leak",)
    lines: tuple = ("keeps", "born")  # words behind `# ` that mark the right lines
    function: str = ""  # of a program without debug information: instead of a line
    processes: int = 1  # that keep, alike
    holder: tuple = ()  # words that must stand in the answer, to say what keeps it
    quick: bool = False  # also in `make test`
    launcher: str = ""  # a file of programs that starts it: Python, a shell's or C
    ours: bool = False  # linked with our own library
    forecast: str = ""  # the limit that it names
    more: dict = dataclasses.field(default_factory=dict)  # environment


CALM = ("flat", "reserve", "cache", "retention", "fragmentation")
NATIVE = dict(program="native.cc", python="none")

CASES = [
    Case("loader", "loader.py", ("all",), python="torch", processes=2, holder=("seen",)),
    Case("loader one worker", "loader.py", ("1",), python="torch", holder=("seen",)),
    Case("pool fork", "pool.py", ("fork",), processes=2, holder=("results",), quick=True),
    Case("pool forkserver", "pool.py", ("forkserver",), processes=2, holder=("results",)),
    Case("pool spawn", "pool.py", ("spawn",), processes=2, holder=("results",)),
    Case("pool calm", "pool.py", ("fork", "calm"), verdicts=CALM),
    Case("ranks", "ranks.py", ("2",), holder=("history",), quick=True),
    Case("ranks first", "ranks.py", ("0",), holder=("history",)),
    Case("server", "server.py", holder=("sessions",)),
    Case("thread", "threads.py", holder=("archive",)),
    Case("extension", "extension.py", extension="native_records.c"),
    Case("native static", arguments=("static",), flags=("-g", "-O1"), lines=("keeps static",), holder=("all_batches",), **NATIVE),
    Case("native static without -g", arguments=("static",), flags=("-O1",), function="keep_batch()", holder=("all_batches",), quick=True, **NATIVE),
    Case("native object", arguments=("object",), flags=("-g", "-O1"), lines=("keeps object",), **NATIVE),
    Case("native object without -g", arguments=("object",), flags=("-O1",), function="Recorder::record()", **NATIVE),
    Case("native lost", arguments=("lost",), flags=("-g", "-O1"), lines=("keeps lost",), holder=("no pointer",), **NATIVE),
    Case("native library", arguments=("library",), flags=("-g", "-O2"), lines=("keeps library",), **NATIVE),
    Case("native library without -g", arguments=("library",), flags=("-O2",), function="remember(", **NATIVE),
    Case("native epochs", arguments=("static", "epochs"), flags=("-g", "-O1"), lines=("keeps static",), **NATIVE),
    Case("native stream", arguments=("static", "stream"), flags=("-g", "-O1"), lines=("keeps static",), **NATIVE),
    Case("native calm", arguments=("calm",), flags=("-O1",), verdicts=CALM, **NATIVE),
    Case("native calm epochs", arguments=("calm", "epochs"), flags=("-O1",), verdicts=CALM, **NATIVE),
    Case("shared segments", "shared.py", ("segments",), lines=("keeps segments",), holder=("kept",)),
    Case("shared anonymous", "shared.py", ("anonymous",), lines=("keeps anonymous",), holder=("kept",), quick=True),
    Case("shared files", "shared.py", ("files",), lines=("keeps files",), holder=("kept",)),
    Case("shared tmpfs", "shared.py", ("tmpfs",), lines=(), holder=("/dev/shm",)),
    Case("shared nameless", "shared.py", ("nameless",), lines=(), holder=("/dev/shm",)),
    Case("shared calm", "shared.py", ("calm",), verdicts=CALM),
    Case("registry logging", "registry.py", ("logging",), lines=("keeps logging", "born"), holder=("handlers",)),
    Case("registry atexit", "registry.py", ("atexit",), lines=("keeps atexit", "born"), holder=("atexit",)),
    Case("torchrun one rank", "rank.py", ("2",), launcher="launch.py 4", holder=("history",)),
    Case("torchrun all ranks", "rank.py", ("all",), launcher="launch.py 2", processes=2, holder=("history",)),
    Case("uv run", "rank.py", ("all",), launcher="launch.c", holder=("history",), quick=True),
    Case("uv run silent", "rank.py", ("all", "silent"), launcher="launch.c", holder=("history",)),
    Case("conda run", "rank.py", ("all",), launcher="launch.sh", holder=("history",)),
    Case("conda run silent", "rank.py", ("all", "silent"), launcher="launch.sh", holder=("history",)),
    Case("limited", "limited.py", holder=("history",), forecast="RLIMIT_AS"),
    Case("our own library", "mill.cc", python="none", flags=("-g", "-O1"), ours=True),
]
for allocator in ALLOCATORS:
    CASES.append(Case("native static " + allocator, arguments=("static",), flags=("-g", "-O1"), lines=("keeps static",), allocator=allocator, **NATIVE))
    CASES.append(Case("native static linked with " + allocator, arguments=("static",), flags=("-g", "-O1"), lines=("keeps static",), allocator=allocator, linked=True, **NATIVE))
    CASES.append(Case("native object without -g " + allocator, arguments=("object",), flags=("-O1",), function="Recorder::record()", allocator=allocator, **NATIVE))
    CASES.append(Case("native calm " + allocator, arguments=("calm",), flags=("-O1",), verdicts=CALM, allocator=allocator, **NATIVE))
    CASES.append(Case("attribute " + allocator, "attribute.py", allocator=allocator, holder=("history",)))
CASES += [Case("Python " + version, "attribute.py", python=version, holder=("history",), quick=version == "3.9") for version in ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15")]


def library(allocator):
    """The path of an allocator's library, or None."""
    found = sorted(glob.glob("/usr/lib/x86_64-linux-gnu/" + ALLOCATORS[allocator]))
    return found[0] if found else None
