"""%load_ext millpond: %%millpond watches a cell, %mprof profiles functions line by line while a statement runs."""

import shlex

_kCell = "%%millpond [-o FILE] [--no-probes]: watches this cell, and shows why its memory grows. The variable _millpond is the report."
_kProf = "%mprof -f FUNCTION [-f FUNCTION ...] STATEMENT: the lines of these functions while the statement runs, as a table. The variable _mprof is the result."


def load(shell):
    shell.register_magic_function(lambda line, cell: _watch_cell(shell, line, cell), magic_kind="cell", magic_name="millpond")
    shell.register_magic_function(lambda line, cell=None: _profile(shell, line, cell), magic_kind="line_cell", magic_name="mprof")


def unload(shell):
    for kind, name in (("cell", "millpond"), ("line", "mprof"), ("cell", "mprof")):
        shell.magics_manager.magics[kind].pop(name, None)


def _words(line, usage):
    try:
        return shlex.split(line)
    except ValueError as error:
        raise _wrong("%s; %s" % (error, usage))


def _wrong(text):
    from IPython.core.error import UsageError

    return UsageError(text)


def _watch_cell(shell, line, cell):
    from ._watch import Watch

    output, probes, folder = None, True, None
    words = _words(line, _kCell)
    while words:
        word = words.pop(0)
        if word in ("-o", "--out") and words:
            output = words.pop(0)
        elif word == "--no-probes":
            probes = False
        else:
            raise _wrong("%%millpond does not know %r: %s" % (word, _kCell))
    if output is None:
        import tempfile

        folder = tempfile.TemporaryDirectory(prefix="millpond-cell-")
        output = folder.name + "/run.pond"
    with Watch(output, probes=probes, folder=folder) as one:
        shell.run_cell(cell)  # an exception is shown there, and the answer after it
    report = one.report()
    shell.user_ns["_millpond"] = report
    _show(report)


def _profile(shell, line, cell):
    from . import _profile as profiles

    rest = line.strip()
    names = []
    while rest.startswith("-f"):
        rest = rest[2:].lstrip()
        name, _, rest = rest.partition(" ")
        if not name:
            break
        names.append(name)
        rest = rest.strip()
    statement = cell if cell is not None else rest
    if not names or not statement.strip():
        raise _wrong(_kProf)
    found = []
    for name in names:
        try:
            found.append(eval(name, shell.user_global_ns, shell.user_ns))
        except Exception as error:
            raise _wrong("%%mprof: %s is no function here: %s" % (name, error))
    shown = profiles.collect([_code_of(name, function) for name, function in zip(names, found)], lambda: shell.run_cell(statement) if cell is not None else shell.ex(statement))
    shell.user_ns["_mprof"] = shown
    _show(shown)
    return None


def _code_of(name, function):
    import inspect

    target = inspect.unwrap(function) if callable(function) else function
    target = getattr(target, "__func__", target)
    code = getattr(target, "__code__", None)
    if code is None:
        raise _wrong("%%mprof: %s is not a function that is written in Python" % name)
    return code


def _show(what):
    from IPython.display import display

    display(what)
