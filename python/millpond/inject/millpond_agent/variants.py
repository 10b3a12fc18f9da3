"""`millpond bisect`: one thing in the program changed from outside, by MILLPOND_VARIANT. `look` changes nothing and says what could be
changed; any other name changes that and says so, once, in the note `variant` with the keys `name` and `count`.

  callbacks   fit gets only the callbacks that are Keras's own       pipeline  shuffle, cache and prefetch of tf.data do nothing
  validation  fit gets no validation data                            eager     compile turns run_eagerly round
  one_batch   fit and DataLoader see their first batch over and over gc        gc.collect after every round

Unlike the rest of the agent this does change the program; nothing here is loaded unless bisect asks."""

import functools
import gc
import inspect
import itertools
import os
import time

from . import imports, link, periods, state
from .wrapping import hide

kCountSeconds = 20  # to find out how many batches a data set has
_asked = os.environ.get("MILLPOND_VARIANT", "")
_said = set()


def install():
    if _asked in ("look", "gc"):
        _install_gc()
    imports.add(HOOKS)


def _wanted(name, count=1):
    """Whether to change this now. Says once that it could be, or was."""
    if _asked not in ("look", name):
        return False
    if name not in _said:
        _said.add(name)
        link.note({"note": "variant", "name": name, "count": count})
    return _asked == name


def _replace(owner, name, make):
    """Below the agent's own wrappers, which are set after this one: so they count what the program asked for."""
    original = vars(owner).get(name)
    if callable(original):
        setattr(owner, name, hide(functools.wraps(original)(make(original))))


# Keras ----------------------------------------------------------------------------------------------------------------


def _trainer(module):
    for name, owner in list(vars(module).items()):
        if isinstance(owner, type) and name.endswith("Trainer") and owner.__module__ == module.__name__:
            _replace(owner, "fit", _changing(_change_fit))


def _changing(change):
    """A wrapper that hands a call's arguments by name to `change`; whatever goes wrong there, the call is made."""

    def wrap(original):
        signature = inspect.signature(original)

        def call(*args, **kwargs):
            try:
                bound = signature.bind(*args, **kwargs)
                with state.own_work():
                    change(bound.arguments, signature)
                args, kwargs = bound.args, bound.kwargs
            except Exception:
                link.pass_on()
                pass
            return original(*args, **kwargs)

        return call

    return wrap


def _change_fit(given, signature):
    callbacks = given.get("callbacks")
    if callbacks is not None and not hasattr(callbacks, "on_epoch_end"):
        callbacks = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    elif callbacks is not None and not hasattr(callbacks, "callbacks"):
        callbacks = [callbacks]  # one alone; a CallbackList of the program's own is left as it is
    if isinstance(callbacks, list):
        own = [callback for callback in callbacks if not _from_keras(callback)]
        if own and _wanted("callbacks", len(own)):
            given["callbacks"] = [callback for callback in callbacks if _from_keras(callback)]
    if given.get("validation_data") is not None or given.get("validation_split"):
        if _wanted("validation"):
            for name in ("validation_data", "validation_split", "validation_steps", "validation_batch_size"):
                given.pop(name, None)
    if given.get("x") is not None and _wanted("one_batch"):
        _one_batch(given)


def _from_keras(callback):
    kind = type(callback)
    # a LambdaCallback is Keras's own, what it calls is not
    return kind.__module__.partition(".")[0] in ("keras", "tf_keras", "tensorflow") and kind.__name__ != "LambdaCallback"


def _one_batch(given):
    x = given["x"]
    if hasattr(x, "take") and hasattr(x, "element_spec"):  # tf.data
        if not given.get("steps_per_epoch"):
            steps = int(x.cardinality().numpy()) if hasattr(x, "cardinality") else -1
            given["steps_per_epoch"] = steps if steps > 0 else _count(x)
        given["x"] = x.take(1).cache().repeat()
    elif hasattr(x, "__getitem__") and hasattr(x, "__len__") and any(kind.__name__ in ("PyDataset", "Sequence") for kind in type(x).__mro__):
        first = x[0]
        # the same object under a class of the same name: whoever holds it sees the change
        x.__class__ = type(type(x).__name__, (type(x),), {"__getitem__": lambda self, index: first})
    elif hasattr(x, "__next__"):
        first = next(x)
        given["x"] = (first for _ in itertools.count())
    elif not hasattr(type(x), "__iter__") or hasattr(x, "shape") or isinstance(x, (list, tuple, dict)):
        size = given.get("batch_size") or 32
        for name in ("x", "y", "sample_weight"):
            given[name] = _repeated(given.get(name), size)


def _count(batches):
    """How many there are, by running through once."""
    until = time.monotonic() + kCountSeconds
    count = 0
    for _ in batches:
        count += 1
        if time.monotonic() > until:
            break
    return count


def _repeated(values, size):
    """An array of the same shape whose rows are those of the first batch."""
    if isinstance(values, (list, tuple)):
        return type(values)(_repeated(part, size) for part in values)
    if isinstance(values, dict):
        return {name: _repeated(part, size) for name, part in values.items()}
    if not hasattr(values, "shape") or not len(values.shape):
        return values
    import numpy

    return numpy.asarray(values)[numpy.arange(int(values.shape[0])) % size]


def _change_compile(given, signature):
    if _wanted("eager"):
        eager = not given.get("run_eagerly")
        given["run_eagerly"] = eager
        if eager and "jit_compile" in signature.parameters:
            given["jit_compile"] = False  # Keras refuses both


def _base_trainer(module):
    _replace(module.Trainer, "compile", _changing(_change_compile))


def _keras2(module):
    _replace(module.Model, "fit", _changing(_change_fit))
    _replace(module.Model, "compile", _changing(_change_compile))


# tf.data --------------------------------------------------------------------------------------------------------------


def _dataset(module):
    for owner in (vars(module).get("DatasetV2"), vars(module).get("DatasetV1")):
        for name in ("shuffle", "cache", "prefetch"):
            if owner is not None:
                _replace(owner, name, _nothing)


def _nothing(original):
    def stage(self, *args, **kwargs):
        return self if _wanted("pipeline") else original(self, *args, **kwargs)

    return stage


# PyTorch --------------------------------------------------------------------------------------------------------------


def _dataloader(module):
    _replace(module.DataLoader, "__iter__", _iterate)


def _iterate(original):
    def __iter__(self):
        if not _wanted("one_batch"):
            return original(self)
        return _again(self, original)

    return __iter__


def _again(loader, original):
    known = getattr(loader, "_millpond_batch", None)
    if known is None:
        try:
            length = len(loader)
        except TypeError:
            length = None  # an iterable data set: the first epoch is as it is, and counted
        if length is None:
            first, length = None, 0
            for batch in original(loader):
                first = batch if first is None else first
                length += 1
                yield batch
            if first is not None:
                loader._millpond_batch = (first, length)
            return
        batches = original(loader)
        first = next(iter(batches), None)
        if first is None:
            return
        known = loader._millpond_batch = (first, length)
        del batches  # and with it its worker processes
    for _ in range(known[1]):
        yield known[0]


# gc -------------------------------------------------------------------------------------------------------------------


def _install_gc():
    """Every round that the agent sees ends with gc.collect; of steps, which come in thousands, every fiftieth."""
    original = periods.period
    steps = [0]

    @functools.wraps(original)
    def period(kind, name="", told=1):
        if state.on and not state.here.working and _wanted("gc"):
            coarse = kind in periods.kCoarse
            steps[0] += not coarse
            if coarse or steps[0] % 50 == 0:
                with state.own_work():
                    gc.collect()
        original(kind, name, told)

    periods.period = period


HOOKS = {
    "keras.src.trainers.trainer": _base_trainer,
    "keras.src.backend.tensorflow.trainer": _trainer,
    "keras.src.backend.jax.trainer": _trainer,
    "keras.src.backend.torch.trainer": _trainer,
    "keras.src.backend.numpy.trainer": _trainer,
    "tf_keras.src.engine.training": _keras2,
    "keras.src.engine.training": _keras2,
    "tensorflow.python.data.ops.dataset_ops": _dataset,
    "torch.utils.data.dataloader": _dataloader,
}
