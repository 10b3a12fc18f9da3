"""The pool of JAX: the counters of its devices, its living arrays, and where they were made: by the traceback that each array has, otherwise by the profile of device memory."""

import sys
import weakref

from . import frames, gpu, link, pprof

kArrays = 20000
kProcessors = ("cpu", "interpreter")  # backends without a memory of their own


class JaxPool:
    name = "jax"

    def __init__(self):
        self.refused = None
        self.lines = {}  # stack -> bytes in the profile before
        self.tells = True  # arrays have tracebacks

    def _backends(self):
        bridge = sys.modules.get("jax._src.xla_bridge")
        return getattr(bridge, "_backends", None) or {}

    def ready(self):
        """A backend with a device that is no processor has been started by the program."""
        return any(name not in kProcessors for name in self._backends())

    def _devices(self):
        for name, backend in list(self._backends().items()):
            if name not in kProcessors:
                yield from backend.local_devices()

    def counters(self):
        for device in self._devices():
            stats = device.memory_stats()
            if not stats:
                continue
            values = {"in_use": stats.get("bytes_in_use"), "peak": stats.get("peak_bytes_in_use"), "limit": stats.get("bytes_limit"),
                      "reserved": stats.get("pool_bytes") or stats.get("bytes_reserved") or None, "largest": stats.get("largest_free_block_bytes")}
            yield _index(device), {key: int(value) for key, value in values.items() if value is not None}

    def record(self, on):
        """JAX always knows where its arrays were made."""

    def blocks(self, ledger):
        found = []
        for array in self._arrays():
            try:
                if array.is_deleted():
                    continue
                devices = array.devices()
                device = next(iter(devices))
                if device.platform in kProcessors:
                    continue
                stack = self._stack(array)
                found.append((id(array), int(array.nbytes) // len(devices), _index(device), weakref.ref(array), None, stack))
            except Exception:  # an array that is going
                continue
        return found

    def _arrays(self):
        arrays = sys.modules["jax"].live_arrays()
        return arrays if len(arrays) <= kArrays else sorted(arrays, key=lambda array: -array.nbytes)[:kArrays]

    def _stack(self, array):
        """A function that tells where the array was made; None: it is not known."""
        if not self.tells:
            return None
        traceback = getattr(array, "traceback", None)
        if getattr(traceback, "frames", None) is None:
            return None
        return lambda: [(frame.file_name, int(frame.line_num), frame.function_name) for frame in traceback.frames]

    def owners(self, blocks, tensors):
        for key in blocks.entries:
            blocks.owned += (key, key)  # a block is known by the array that owns it
        if all(entry[3] is None for entry in blocks.entries.values()):
            self._label_by_profile(blocks)

    def _label_by_profile(self, blocks):
        """Where arrays do not say where they were made: the lines under which living buffers gained since the profile before, if one has nearly all of it."""
        profile = getattr(sys.modules["jax"], "profiler", None)
        rows = pprof.read(profile.device_memory_profile()) if profile is not None else None
        if rows is None:
            return
        now = {}
        for stack, _, size, labels in rows:
            if labels.get("kind", "buffer") == "buffer":
                now[tuple(stack)] = now.get(tuple(stack), 0) + size
        before, self.lines = self.lines, now
        gained = {}
        for stack, size in now.items():
            if size > before.get(stack, 0) and any(frames.has_source(file) for file, _, _ in stack):
                gained[stack] = size - before.get(stack, 0)
        most = max(gained, key=gained.get) if before and gained else None
        if most is None or gained[most] < 0.8 * sum(gained.values()):
            return
        number = gpu.label(most)
        for entry in blocks.entries.values():
            entry[3] = number


def _index(device):
    local = getattr(device, "local_hardware_id", None)
    return int(local) if isinstance(local, int) else int(device.id)


def _jax(module):
    try:
        gpu.add(JaxPool())
    except Exception:
        link.oops()


HOOKS = {"jax": _jax}
