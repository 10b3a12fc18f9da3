"""JAX: compilations (its own monitoring events) and live arrays."""

import sys

from . import calls, counters, frames, link, periods, state
from .wrapping import at_stop, watch

kCompiled = "/jax/core/compile/backend_compile_duration"
_compiles = 0


def _jax(module):
    frames.add_framework(module)
    link.note({"note": "framework", "name": "jax", "version": getattr(module, "__version__", None)})
    counters.add(lambda: {"jax.compiles": _compiles})
    counters.add_dear(_live)
    watch(module, "jit", _jitting)


def _jitting(args, kwargs):
    calls.count("jax_jit", 2)


def _live(objects, types):
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None or not getattr(bridge, "_backends", None):
        return {}  # asking would start a backend
    arrays = sys.modules["jax"].live_arrays()
    return {"jax.live_arrays": len(arrays), "jax.live_bytes": sum(array.nbytes for array in arrays)}


def _on_duration(event, duration, **kwargs):
    global _compiles
    try:
        if event == kCompiled and state.on and not state.here.working:
            _compiles += 1
            link.units[link.TRACE] += 1
            calls.count("jax_compile", 1)
    except Exception:
        link.oops()


def _monitoring(module):
    module.register_event_duration_secs_listener(_on_duration)
    forget = getattr(module, "unregister_event_duration_listener", None) or getattr(module, "_unregister_event_duration_listener_by_callback", None)
    if forget is not None:
        at_stop(lambda: forget(_on_duration))


HOOKS = {"jax": _jax, "jax._src.monitoring": _monitoring}
