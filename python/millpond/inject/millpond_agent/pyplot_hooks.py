"""matplotlib.pyplot: figures made (by the user's line) and figures open."""

import sys

from . import calls, counters, frames, holders, link
from .wrapping import watch


def _open():
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return helpers.Gcf.figs if helpers else {}


def _matplotlib(module):
    frames.add_framework(module)
    link.note({"note": "framework", "name": "matplotlib", "version": getattr(module, "__version__", None)})


def _made(token, args, kwargs):
    count = len(_open())
    if count > token:
        entry = calls.count("figure", 2)
        if entry is not None and count > 20:
            calls.advise("figures_open", entry, count)


def _pyplot(module):
    watch(module, "figure", lambda args, kwargs: len(_open()), _made)
    counters.add(lambda: {"pyplot.figures": len(_open())})
    holders.add_registry("pyplot figures", lambda: len(_open()), ("figure",))


HOOKS = {"matplotlib": _matplotlib, "matplotlib.pyplot": _pyplot}
