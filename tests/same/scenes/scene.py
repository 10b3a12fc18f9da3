"""A scene is a piece of a random program: a function of a random generator that gives source text. @scene puts it into SCENES."""
import textwrap

SCENES = {}


def scene(function):
    SCENES[function.__name__] = function
    return function


def text(template, **values):
    return textwrap.dedent(template).strip("\n") % values
