"""TensorFlow: traces of tf.functions, calls of them, gradients of tapes, tf.data stages, the gradient registry and live graphs."""

import functools
import sys
import weakref

from . import calls, counters, frames, holders, link, periods, state
from .wrapping import around, hide, replace, watch

kStages = ("cache", "shuffle", "prefetch", "map", "interleave", "from_generator", "from_tensor_slices", "from_tensors", "repeat", "batch",
           "padded_batch", "list_files", "snapshot")
kPython = ("py_function", "numpy_function")  # called while a stage's function is traced: the frame is not the user's own
kNotesMost = 64
kFunctionsMost = 512
_traces = 0
_dataset_said = set()
_signatures = {}  # id of the options that a tf.function has for its traces -> (weak reference to them, the last signature)


def _tensorflow(module):
    frames.add_framework(module)
    link.note({"note": "framework", "name": "tensorflow", "version": getattr(module, "__version__", None)})


def _registry_size():
    module = sys.modules.get("tensorflow.python.framework.ops")
    return len(module.gradient_registry._registry)


def _ops(module):
    counters.add(lambda: {"tf.gradient_registry": _registry_size(), "tf.traces": _traces})
    counters.add_dear(_count_graphs)
    holders.add_registry("TensorFlow gradient registry", _registry_size, ("model", "compile", "trace"))


def _count_graphs(objects, types):
    module = sys.modules.get("tensorflow.python.framework.func_graph")
    return {"tf.funcgraphs": types.get(module.FuncGraph, 0)} if module else {}


def _tracing_begins(args, kwargs):
    global _traces
    counted = not state.here.tracing and not _for_a_pipeline()
    if counted:
        _traces += 1
        link.units[link.TRACE] += 1
        entry = calls.count("trace", 2)
        if entry is not None:
            _reason(entry, args)
        if entry is not None and entry[0] == 6 and not state.here.phase:
            calls.advise("retracing", entry)
        link.mark("trace", "", _traces, link.BEGIN)
    state.here.tracing += 1
    return 2 if counted else 1


def _reason(entry, args):
    """Why it is traced, into the counted line: a `new` function, another `object` or `literal` (a Python value) given to it, another `shape`;
    `jit`: XLA compiles it."""
    if len(entry) < 5:
        entry.append({"new": 0, "object": 0, "literal": 0, "shape": 0, "jit": 0, "argument": None})
    why = entry[4]
    try:
        kind, _, _, options = args
        why["jit"] += bool((options.attributes or {}).get("_XlaMustCompile"))
        why["_made"] = _made_at(options.python_function)
        signature = {name: _type_text(parameter.type_constraint) for name, parameter in list(kind.parameters.items())[:64]}
        known = _signatures.get(id(options))
        if known is None or known[0]() is not options:
            why["new"] += 1
        else:
            changed = [name for name, text in signature.items() if known[1].get(name) != text]
            literal = next((name for name in changed if "Literal" in signature[name]), None)
            other = next((name for name in changed if "Weakref" in signature[name]), None)
            if literal is not None or other is not None:
                why["literal" if other is None else "object"] += 1
                why["argument"] = literal or other
                why["_position"] = list(signature).index(why["argument"])
                why["_literal"] = type(getattr(kind.parameters[why["argument"]].type_constraint, "value", None))
            elif changed:
                why["shape"] += 1
        if len(_signatures) >= kFunctionsMost:
            _signatures.clear()
        _signatures[id(options)] = (weakref.ref(options), signature)
    except Exception:  # another TensorFlow: the reason stays unknown
        link.pass_on()
        pass


def _made_at(function):
    """(file, first line) of the user's function that is traced."""
    for _ in range(8):
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else None


def _type_text(kind):
    return "%s %s" % (type(kind).__name__, repr(kind)[:300])


def _for_a_pipeline():
    """tf.data traces the functions of its stages whenever a pipeline is made, in every predict: nobody's retracing."""
    frame = sys._getframe(3)
    for _ in range(16):
        if frame is None:
            return False
        if frame.f_code.co_filename.endswith("structured_function.py"):
            return True
        frame = frame.f_back
    return False


def _tracing_ends(token, args, kwargs):
    if token:
        state.here.tracing -= 1
        if token == 2:
            link.mark("trace", "", _traces, link.END)


def _tracing(module):
    watch(module, "_create_concrete_function", _tracing_begins, _tracing_ends)


def _called(args, kwargs):
    link.units[link.CALL] += 1


def _call_done(token, args, kwargs):
    periods.period("call", "tf.function")


def _function(module):
    """Calls of a tf.function by the user; those of fit and of another function pass with as little as can be."""

    def wrap(function):
        watched = around(function, _called, _call_done)
        here = state.here

        @functools.wraps(function)
        def __call__(self, *args, **kwargs):
            try:
                inside = here.phase or here.tracing
            except (AttributeError, NameError, TypeError):  # the interpreter is being taken down; not what a signal's handler raises
                inside = True
            return (function if inside else watched)(self, *args, **kwargs)

        __call__.__millpond__ = True
        return hide(__call__)

    replace(module.Function, "__call__", wrap)


def _gradient_done(token, args, kwargs):
    here = state.here
    if here.phase or here.tracing:
        return
    link.units[link.BATCH] += 1
    calls.count("tape_gradient", 2)
    periods.period("step", "tape")


def _backprop(module):
    watch(module.GradientTape, "gradient", None, _gradient_done)


def _dataset(module):
    for owner in (module.DatasetV2,):
        for name in kStages:
            if name in vars(owner):
                watch(owner, name, _stage(name))


def _stage(name):
    def enter(args, kwargs):
        frame = sys._getframe(2)
        if name not in kPython and (frame is None or not frames.is_user_frame(frame)):
            return  # Keras's own pipelines
        entry = calls.count("dataset" if name not in kPython else name, 2)
        if entry is None or len(_dataset_said) >= kNotesMost:
            return
        place = entry[1]
        key = (name, place["file"], place["line"])
        if key in _dataset_said:
            return
        _dataset_said.add(key)
        row = {"note": "dataset", "op": name, "buffer": _buffer(name, args, kwargs)}
        row.update(place)
        link.note(row)

    return enter


def _scripts(module):
    for name, known in (("eager_py_func", "py_function"), ("numpy_function", "numpy_function"), ("py_func", "py_function")):
        watch(module, name, _stage(known))


def _buffer(name, args, kwargs):
    if name not in ("shuffle", "prefetch", "batch", "padded_batch"):
        return None
    value = kwargs.get("buffer_size", kwargs.get("batch_size", args[1] if len(args) > 1 else None))
    try:
        return int(value)
    except Exception:
        link.pass_on()
        return None


def _loading(module):
    watch(module, "load", lambda args, kwargs: calls.count("load_model", 2))


HOOKS = {
    "tensorflow.python.saved_model.load": _loading,
    "tensorflow": _tensorflow,
    "tensorflow.python.framework.ops": _ops,
    "tensorflow.python.eager.polymorphic_function.tracing_compilation": _tracing,
    "tensorflow.python.eager.polymorphic_function.polymorphic_function": _function,
    "tensorflow.python.eager.backprop": _backprop,
    "tensorflow.python.data.ops.dataset_ops": _dataset,
    "tensorflow.python.ops.script_ops": _scripts,
}
