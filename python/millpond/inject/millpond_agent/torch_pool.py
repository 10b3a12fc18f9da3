"""The pool of torch.cuda: its counters, its blocks, and where they were allocated while that is recorded (torch.cuda.memory._record_memory_history)."""

import contextlib
import sys
import threading
import time
import types

from . import gpu, link
from .wrapping import around, put

kGraph = 0.03  # seconds for following graphs of gradients at a walk
_saved_names = {}


def _current(stats, name, what="current"):
    """memory_stats_as_nested_dict: {"allocated_bytes": {"all": {"current": ...}}}"""
    part = stats.get(name)
    part = part.get("all", part) if isinstance(part, dict) else None
    value = part.get(what) if isinstance(part, dict) else None
    return int(value) if isinstance(value, int) else None


class _Absent(types.ModuleType):
    """Stands for a module that is not imported. Only the thread that looks sees it empty; another one is given the real one."""

    def __init__(self, name):
        super().__init__(name)
        self.looks = threading.get_ident()

    def __getattr__(self, name):
        if name.startswith("__") or threading.get_ident() == self.looks:
            raise AttributeError(name)
        return getattr(__import__(self.__name__, fromlist=("*",)), name)


@contextlib.contextmanager
def _without_compiler():
    """A snapshot asks for `torch._inductor`, whose frames it would know, and that alone imports it: seconds, and half a million objects. Where the program has not, it is not there."""
    torch = sys.modules["torch"]
    known = "torch._inductor" in sys.modules or "_inductor" in vars(torch)
    if not known:
        absent = torch._inductor = _Absent("torch._inductor")
    try:
        yield
    finally:
        if not known and vars(torch).get("_inductor") is absent:
            del torch._inductor


class TorchPool:
    name = "torch"

    def __init__(self):
        self.refused = None  # why blocks are not looked at
        self.recording = False
        self.records = True  # False: the program uses the recording itself, or this torch has another one
        self.totals = {}

    def watch_use(self, memory):
        """Once the program records or looks at snapshots itself, we do not. memory: the module torch.cuda.memory."""
        for name in ("_record_memory_history", "_snapshot", "_dump_snapshot", "memory_snapshot", "_record_memory_history_legacy"):
            function = vars(memory).get(name)
            if callable(function) and not getattr(function, "__millpond__", False):
                made = around(function, self._used)
                put(memory, name, function, made)
                package = sys.modules.get("torch.cuda")
                if package is not None and vars(package).get(name) is function:
                    put(package, name, function, made)

    def _used(self, args, kwargs):
        if self.records:
            self._say_refused("the program records or reads the history of allocations itself")
            if self.recording:
                self.record(False)
        self.records = False

    def _say_refused(self, why):
        link.note({"note": "gpu", "pool": self.name, "refused": why})

    def ready(self):
        """The program has started CUDA, and is not capturing a graph at this moment."""
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if cuda is None or not cuda.is_initialized():
            return False
        capturing = getattr(cuda, "is_current_stream_capturing", None)
        return capturing is None or not capturing()

    def counters(self):
        cuda = sys.modules["torch"].cuda
        for index in range(cuda.device_count()):
            stats = cuda.memory_stats_as_nested_dict(index)
            if not stats or not _current(stats, "reserved_bytes", "peak"):
                continue  # the program does not use it
            if index not in self.totals:
                self.totals[index] = int(cuda.get_device_properties(index).total_memory)
            yield index, {
                "in_use": _current(stats, "allocated_bytes"),
                "reserved": _current(stats, "reserved_bytes"),
                "peak": _current(stats, "allocated_bytes", "peak"),
                "split": _current(stats, "inactive_split_bytes"),
                "retries": int(stats.get("num_alloc_retries", 0)),
                "ooms": int(stats.get("num_ooms", 0)),
                "limit": self.totals[index],
            }

    def _segments(self):
        memory = sys.modules["torch.cuda.memory"]
        with _without_compiler():
            if callable(getattr(memory, "_snapshot", None)):
                return memory._snapshot()["segments"]
            return memory.memory_snapshot()

    def blocks(self, ledger):
        found = []
        largest = {}
        for segment in self._segments():
            device = segment["device"]
            address = segment["address"]
            for block in segment["blocks"]:
                size = block["size"]
                if block["state"] == "active_allocated":
                    if size >= gpu.kLeastBlock:
                        # Older ones keep the frames in a history of the block, the newest first.
                        frames = block.get("frames") or (block.get("history") or ({},))[0].get("frames")
                        mark = (frames[0].get("filename"), frames[0].get("line"), len(frames)) if frames else None
                        found.append((address, size, device, None, mark, _stack_of(frames) if frames else None))
                elif block["state"] == "inactive":
                    largest[device] = max(largest.get(device, 0), size)
                address += size
        ledger.largest = {gpu.space(device): size for device, size in largest.items()}
        return found

    def record(self, on):
        """Turns the recording of births on or off."""
        if not self.records:
            return
        memory = sys.modules["torch.cuda.memory"]
        function = getattr(memory._record_memory_history, "__wrapped__", memory._record_memory_history)
        enabled = getattr(sys.modules["torch"]._C, "_cuda_isHistoryEnabled", None)
        if on and enabled is not None and enabled():
            self._used((), {})
            return
        try:
            names = _parameters(function)
            if "stacks" in names:
                function("state" if on else None, context="alloc" if on else None, stacks="python")
            elif "trace_alloc_max_entries" in names:  # torch 2.0
                function(on, record_context=True, trace_alloc_max_entries=1, trace_alloc_record_context=False)
            else:
                raise TypeError("another signature")
        except Exception as error:
            self.records = False
            self._say_refused("this torch records the history of allocations in a way that is not known here (%s)" % type(error).__name__)

    def owners(self, blocks, tensors):
        """Which of the program's tensors own blocks: by the address of their storage, and by what the graphs of gradients behind them have saved."""
        plain = getattr(sys.modules["torch"]._C, "DisableTorchFunction", None)  # a mode of the program's is not to see what we ask
        with plain() if plain is not None else contextlib.nullcontext():
            self._owners(blocks, tensors)

    def _owners(self, blocks, tensors):
        with_graph = {}  # the node that made a tensor -> the tensors that it made
        for thing in tensors:
            try:
                if thing.device.type != "cpu":
                    key = _address(thing)
                    if key in blocks.entries:
                        blocks.own(thing, key)
                if thing.grad_fn is not None:
                    with_graph.setdefault(thing.grad_fn, []).append(thing)
            except Exception:  # a tensor without storage
                pass
        from . import torch_hooks

        if with_graph and not torch_hooks.saved_hooks_used:
            _follow_graphs(blocks, with_graph)


def _follow_graphs(blocks, with_graph):
    """Gives what graphs have saved to the tensors that these lie behind. Graphs share nodes, and each node is asked once: what was found behind a tensor from which a later one was made belongs to
    the later one too, because its graph leads there. Tensors that were saved are objects of Python's as soon as anybody has asked for them, so many of these have a graph and nothing of the
    program's leads to them: which of its owners a block is told with is the walk's decision."""
    end = time.thread_time() + kGraph
    keys = {}  # node that made a tensor -> keys of what lies behind it
    seen = set()
    # Losses come before what they were made of.
    for root in sorted(with_graph, key=lambda node: min(thing.nelement() for thing in with_graph[node])):
        if root in seen:
            continue
        seen.add(root)
        behind, queue = keys.setdefault(root, set()), [root]
        while queue and time.thread_time() <= end:
            node = queue.pop()
            behind.update(key for key in map(_address, _saved(node)) if key in blocks.entries)
            for below, _ in node.next_functions:
                if below in keys and below is not root:
                    behind |= keys[below]
                if below is not None and below not in seen:
                    seen.add(below)
                    queue.append(below)
    for root, behind in keys.items():
        for thing in with_graph[root]:
            for key in behind:
                blocks.own_by_graph(thing, key)


def _parameters(function):
    """Their names: as the function says itself (torch gives it the signature of another one), or as it was written."""
    told = getattr(function, "__signature__", None)
    if told is not None:
        return tuple(told.parameters)
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _address(tensor):
    """Of its data: a slice keeps all of what it is a slice of."""
    if hasattr(tensor, "untyped_storage"):
        return tensor.untyped_storage().data_ptr()
    return tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()


def _saved(node):
    """Tensors that a node of a graph has saved for backward."""
    kind = type(node)
    names = _saved_names.get(kind)
    if names is None:
        names = _saved_names[kind] = [name for name in dir(node) if name.startswith("_saved_") and not name.startswith("_saved_self_")]
    tensor = sys.modules["torch"].Tensor
    found = []
    for name in names:
        try:
            value = getattr(node, name)
        except Exception:  # freed by backward, or changed since
            continue
        found += [part for part in (value if type(value) in (list, tuple) else (value,)) if isinstance(part, tensor) and part.device.type != "cpu"]
    if not names:
        try:
            found += [part for part in node.saved_tensors if isinstance(part, tensor) and part.device.type != "cpu"]  # of a Function written in Python
        except Exception:
            pass
    return found


def _stack_of(frames):
    return lambda: [(frame.get("filename") or "", int(frame.get("line") or 0), frame.get("name") or "") for frame in frames]


pool = TorchPool()


def _memory(module):
    pool.watch_use(module)
    gpu.add(pool)


HOOKS = {"torch.cuda.memory": _memory}
