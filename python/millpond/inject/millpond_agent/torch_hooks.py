"""PyTorch: optimiser steps, backward, epochs of DataLoaders, live tensors."""

import functools
import sys

from . import calls, counters, frames, link, module_hooks, periods, state
from .wrapping import at_stop, hide, replace, watch

saved_hooks_used = False  # the program packs saved tensors itself: holders.py keeps away from them
kRegister = ("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook")


def _torch(module):
    frames.add_framework(module)
    link.note({"note": "framework", "name": "torch", "version": str(getattr(module, "__version__", ""))})
    counters.add_dear(_tensors)


def _tensors(objects, types):
    tensor = sys.modules["torch"].Tensor
    kinds = {kind for kind in types if tensor in kind.__mro__}
    count = with_grad = size = 0
    storages = set()
    for thing in [thing for thing in objects if type(thing) in kinds] if kinds else ():
        count += 1
        try:
            if thing.grad_fn is not None:
                with_grad += 1
            at = thing.data_ptr()
            if at and at not in storages:
                storages.add(at)
                size += thing.element_size() * thing.nelement()
        except Exception:
            link.oops()
    return {"torch.tensors": count, "torch.with_grad_fn": with_grad, "torch.tensor_bytes": size}


def _stepped(*args, **kwargs):
    """A global hook after Optimizer.step."""
    try:
        if state.on and not state.here.working:
            link.units[link.BATCH] += 1
            calls.count("optimizer_step", 1)
            periods.period("step", "optimizer")
    except Exception:
        link.oops()


def _optimizer(module):
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        at_stop(register(_stepped).remove)
        return

    # torch 1: each optimiser wraps the step of its class when it is made, and so do we after it
    watch(module.Optimizer, "_hook_for_profile", None, lambda token, args, kwargs: replace(type(args[0]), "step", _counting))


def _counting(original):
    @functools.wraps(original)
    def step(*args, **kwargs):
        result = original(*args, **kwargs)
        _stepped()
        return result

    step.__millpond__ = True
    return hide(step)


def _tensor(module):
    watch(module.Tensor, "backward", _backward)


def _backward(args, kwargs):
    calls.count("backward", 2)
    if kwargs.get("create_graph") or (len(args) > 3 and args[3]):
        calls.count("backward_create_graph", 2)


def _dataloader(module):
    watch(module.DataLoader, "__iter__", _iterating)


def _iterating(args, kwargs):
    entry = calls.count("dataloader", 2)
    if entry is not None:
        place = entry[1]
        periods.period("loader", "%s:%d" % (place["file"].rpartition("/")[2], place["line"]))


def _graph(module):
    def entered(args, kwargs):
        global saved_hooks_used
        saved_hooks_used = True

    if hasattr(module, "saved_tensors_hooks"):
        watch(module.saved_tensors_hooks, "__enter__", entered)


def _module(module):
    for name in kRegister:
        watch(module.Module, name, _hooking)


def _hooking(args, kwargs):
    module_hooks.add(kwargs.get("hook") or (args[1] if len(args) > 1 else None))


HOOKS = {
    "torch": _torch,
    "torch.nn.modules.module": _module,
    "torch.optim.optimizer": _optimizer,
    "torch._tensor": _tensor,
    "torch.utils.data.dataloader": _dataloader,
    "torch.autograd.graph": _graph,
}
