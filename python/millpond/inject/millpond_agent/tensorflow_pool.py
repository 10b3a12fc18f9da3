"""The pool of TensorFlow: what is in use and its peak, by its own counters. It tells neither what it has reserved nor what its blocks are."""

import sys

from . import gpu


class TensorFlowPool:
    name = "tensorflow"
    refused = "TensorFlow does not tell what its blocks are"

    def _context(self):
        module = sys.modules.get("tensorflow.python.eager.context")
        context = getattr(module, "_context", None)
        return context if getattr(context, "_initialized", False) else None

    def ready(self):
        """The program has started TensorFlow's devices: asking would."""
        return self._context() is not None

    def counters(self):
        context = self._context()
        memory = sys.modules["tensorflow"].config.experimental.get_memory_info
        for index, device in enumerate(context.list_logical_devices("GPU")):
            told = memory("GPU:%s" % device.name.rpartition(":")[2])
            if told.get("peak"):
                yield index, {"in_use": int(told["current"]), "peak": int(told["peak"])}

    def record(self, on):
        pass


HOOKS = {"tensorflow": lambda module: gpu.add(TensorFlowPool())}
