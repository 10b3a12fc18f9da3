"""Rounds that no framework makes: progress bars of tqdm, and log lines."""

import functools

from . import lines, link, periods
from .wrapping import hide, replace


def _tqdm(module):
    def make(original):
        @functools.wraps(original)
        def __iter__(self):
            name = (lines.pattern_of(str(getattr(self, "desc", "") or "")) or str(getattr(self, "desc", "") or ""))[:60]
            for item in original(self):
                yield item
                try:
                    periods.period("loop", name)
                except Exception:
                    link.oops()

        return hide(__iter__)

    replace(module.tqdm, "__iter__", make)


HOOKS = {"logging": lines.install_logging, "tqdm.std": _tqdm}
