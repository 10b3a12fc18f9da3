"""Keras 3, whatever its backend (and Keras 2 by the same names): phases, epochs, batches, models made, compile, clear_session. Each
hook is set when the module that defines a thing has been imported and before another can copy the name."""

import functools
import sys
import weakref

from . import calls, counters, frames, lines, link, periods, state
from .wrapping import hide, replace, watch

kArraysMost = 32
_data_said = set()
_models = {}  # id -> weak reference
_last_fit = None  # weak reference to the model that was fitted last
_clears_since = 0


def _keras(module):
    frames.add_framework(module)
    config = sys.modules.get("keras.src.backend.config")
    backend = config.backend() if config else None
    link.note({"note": "framework", "name": "keras", "version": getattr(module, "__version__", None), "backend": backend})
    counters.add(lambda: {"keras.models": len(_models)})
    counters.add_dear(_count_layers)


def _count_layers(objects, types):
    module = sys.modules.get("keras.src.layers.layer")
    if module is None:
        return {}
    return {"keras.layers": sum(count for kind, count in types.items() if module.Layer in kind.__mro__)}


# Phases ---------------------------------------------------------------------------------------------------------------


def _phase(what):
    kind = what

    def enter(args, kwargs):
        inner = bool(kwargs.get("_use_cached_eval_dataset"))
        name = "validation" if inner else kind
        entry = None
        if not inner:
            entry = calls.count(kind, 2)
            if kind == "fit":
                _fit_begins(args, kwargs, entry)
            elif kind != "fit":
                link.units[link.CALL] += 1
                if kind == "predict" and entry is not None and entry[0] == 21:
                    calls.advise("predict_in_loop", entry)
            if entry is not None and kind in ("fit", "evaluate", "predict"):
                _data(kind, args[1:], kwargs, entry)
        thinned = entry is not None and entry[0] > 64 and entry[0] & (entry[0] - 1)
        if not thinned:
            link.mark(name, _label(entry), 0 if entry is None else entry[0], link.BEGIN)
        state.here.phase += 1
        return name, entry, thinned

    def leave(token, args, kwargs):
        if token is None:
            return
        state.here.phase -= 1
        name, entry, thinned = token
        if not thinned:
            link.mark(name, _label(entry), 0 if entry is None else entry[0], link.END)
        if name == "fit":
            periods.period("fit")
        elif name != "validation" and not state.here.phase:
            periods.period("call", name)

    return enter, leave


def _label(entry):
    if entry is None:
        return ""
    return "%s:%d" % (entry[1]["file"].rpartition("/")[2], entry[1]["line"])


def _fit_begins(args, kwargs, entry):
    global _last_fit, _clears_since
    link.units[link.FIT] += 1
    model = args[0] if args else None
    if model is None:
        return
    if _last_fit is not None and _last_fit() is model:
        if _clears_since > 2:
            line = calls.most("clear_session")
            if line is not None:
                calls.advise("clear_session_in_loop", line)
    else:
        _clears_since = 0
        _last_fit = weakref.ref(model)


def _data(what, args, kwargs, entry):
    """The note `data`: which arrays were handed over."""
    given = list(args[:2]) + [kwargs.get(name) for name in ("x", "y", "validation_data", "sample_weight")]
    arrays = []
    for value in given:
        for part in value if type(value) in (list, tuple) else (value,):
            size = getattr(part, "nbytes", None)
            if type(size) is int and hasattr(part, "shape") and len(arrays) < 8:
                arrays.append({"shape": [int(n) if n is not None else None for n in part.shape], "dtype": str(part.dtype), "bytes": size,
                               "type": type(part).__name__})
    if not arrays:
        return
    place = entry[1]
    key = (what, place["file"], place["line"], str(arrays))
    if key in _data_said or len(_data_said) >= kArraysMost:
        return
    _data_said.add(key)
    link.note({"note": "data", "what": what, "arrays": arrays, "file": place["file"], "line": place["line"], "text": place["text"]})


def _on_batch():
    """Something that trains one batch: train_on_batch."""

    def enter(args, kwargs):
        link.units[link.BATCH] += 1
        calls.count("train_on_batch", 2)

    def leave(token, args, kwargs):
        periods.period("step", "train_on_batch")

    return enter, leave


def _call_on_batch(args, kwargs):
    link.units[link.CALL] += 1


def _trainer(module):
    """A backend's trainer: fit, evaluate, predict and the calls for one batch."""
    for name, owner in list(vars(module).items()):
        if isinstance(owner, type) and name.endswith("Trainer") and owner.__module__ == module.__name__:
            _watch_trainer(owner)


def _watch_trainer(owner):
    for what in ("fit", "evaluate", "predict"):
        watch(owner, what, *_phase(what))
    watch(owner, "train_on_batch", *_on_batch())
    watch(owner, "predict_on_batch", _call_on_batch)
    watch(owner, "test_on_batch", _call_on_batch)


# Callbacks: epochs and batches ---------------------------------------------------------------------------------------


def _callback_list(module):
    owner = module.CallbackList
    replace(owner, "on_train_batch_end", _counted(periods.Countdown("step", "fit", link.BATCH)))
    watch(owner, "on_epoch_end", None, _epoch_ended)
    watch(owner, "on_epoch_begin", lambda args, kwargs: link.mark("epoch", "", _index(args), link.BEGIN))


def _index(args):
    return args[1] if len(args) > 1 and type(args[1]) is int else 0


def _counted(steps):
    """A wrapper of a method with as little as can be after it: it runs in every batch."""

    def wrap(function):
        @functools.wraps(function)
        def method(self, *args, **kwargs):
            function(self, *args, **kwargs)
            for _ in steps.left:
                return
            steps.reached()

        method.__millpond__ = True
        return hide(method)

    return wrap


def _epoch_ended(token, args, kwargs):
    link.units[link.EPOCH] += 1
    lines.framework_epochs = True
    periods.period("epoch", "fit")


# Models ---------------------------------------------------------------------------------------------------------------


def _base_trainer(module):
    watch(module.Trainer, "__init__", _model_made)
    watch(module.Trainer, "compile", _compiled)


def _model_made(args, kwargs):
    frame = sys._getframe(2)
    for _ in range(24):  # the model that a Sequential makes inside itself is not another one
        if frame is None:
            break
        code = frame.f_code
        if code.co_name == "build" and code.co_filename.endswith("sequential.py"):
            return
        frame = frame.f_back
    if args:
        key = id(args[0])
        if key in _models:
            return
        _models[key] = weakref.ref(args[0], lambda reference: _models.pop(key, None))
    link.units[link.MODEL] += 1
    calls.count("model", 2)
    periods.period("model")


def _compiled(args, kwargs):
    link.units[link.COMPILE] += 1
    entry = calls.count("compile", 2)
    if entry is not None and kwargs.get("run_eagerly"):
        calls.advise("run_eagerly", entry)
    link.mark("compile", _label(entry), link.units[link.COMPILE], link.BEGIN)


def _clearing(args, kwargs):
    global _clears_since
    _clears_since += 1
    calls.count("clear_session", 2)


def _global_state(module):
    watch(module, "clear_session", _clearing)


def _saving(module):
    watch(module, "load_model", lambda args, kwargs: calls.count("load_model", 2))


def _keras2(module):
    """tf_keras and Keras 2: one class has everything."""
    _watch_trainer(module.Model)
    watch(module.Model, "compile", _compiled)
    watch(module.Model, "__init__", _model_made)


HOOKS = {
    "keras": _keras,
    "keras.src.trainers.trainer": _base_trainer,
    "keras.src.backend.tensorflow.trainer": _trainer,
    "keras.src.backend.jax.trainer": _trainer,
    "keras.src.backend.torch.trainer": _trainer,
    "keras.src.backend.numpy.trainer": _trainer,
    "keras.src.callbacks.callback_list": _callback_list,
    "keras.src.backend.common.global_state": _global_state,
    "keras.src.saving.saving_api": _saving,
    "tf_keras.src.engine.training": _keras2,
    "tf_keras.src.callbacks": _callback_list,
    "keras.src.engine.training": _keras2,
    "keras.src.callbacks": lambda module: None if "callback_list" in dir(module) else _callback_list(module),
}
