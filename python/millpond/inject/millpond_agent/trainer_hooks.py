"""Rounds of libraries that train with torch and have loops of their own: epochs of Hugging Face's Trainer and of Lightning, after the user's callbacks have run. What they do with
torch (steps, loaders, backward) torch_hooks.py sees, and that is all of Accelerate's: its loaders ask one of torch for each epoch, at the user's line."""

from . import frames, lines, link, periods
from .wrapping import watch


def _framework(name):
    def found(module):
        frames.add_framework(module)
        link.note({"note": "framework", "name": name, "version": str(getattr(module, "__version__", ""))})

    return found


def _epoch_ended(token, args, kwargs):
    lines.framework_epochs = True
    link.units[link.EPOCH] += 1
    periods.period("epoch", "fit")


def _callbacks(module):
    """transformers.trainer_callback: the handler calls the callbacks of the library and of the user, one after the other."""
    watch(module.CallbackHandler, "on_epoch_end", None, _epoch_ended)


def _fit_loop(module):
    """The loop over epochs; its name has had no underscore before version 2."""
    loop = getattr(module, "_FitLoop", None) or getattr(module, "FitLoop", None)
    if loop is not None:
        watch(loop, "on_advance_end", None, _epoch_ended)


def _fits(owner, name):
    """A method that trains from the first epoch to the last."""

    def enter(args, kwargs):
        lines.framework_epochs = True  # its progress bar says "Epoch 3" many times
        link.units[link.FIT] += 1

    watch(owner, name, enter, lambda token, args, kwargs: periods.period("fit"))


def _hugging_face(module):
    _fits(module.Trainer, "train")


def _lightning(module):
    _fits(module.Trainer, "fit")


HOOKS = {
    "transformers": _framework("transformers"),
    "transformers.trainer_callback": _callbacks,
    "transformers.trainer": _hugging_face,
    "lightning.pytorch": _framework("lightning"),
    "lightning.pytorch.loops.fit_loop": _fit_loop,
    "lightning.pytorch.trainer.trainer": _lightning,
    "pytorch_lightning": _framework("lightning"),
    "pytorch_lightning.loops.fit_loop": _fit_loop,
    "pytorch_lightning.trainer.trainer": _lightning,
    "accelerate": _framework("accelerate"),
}
