"""Threads of the program. The program's own module is asked where it has imported one; the agent does not import it: it would stand there as if the program had."""

import _thread
import sys

get_ident = _thread.get_ident
Lock, RLock, local = _thread.allocate_lock, _thread.RLock, _thread._local
_first = get_ident()  # of the thread that loaded the agent: the main one, but for a program that runs already


def count():
    module = sys.modules.get("threading")
    return module.active_count() if module is not None else len(sys._current_frames())


def main_ident():
    module = sys.modules.get("threading")
    return module.main_thread().ident if module is not None else _first
