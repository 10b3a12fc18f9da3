"""Bytes in words, the same as the program's: KiB, MiB, GiB mean 1024."""

_kUnits = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def text_of(size):
    """1,234 B, 12.3 KiB: three digits."""
    sign, size = ("-" if size < 0 else ""), abs(size)
    if size < 1024:
        return "%s%d B" % (sign, size)
    unit = 0
    while size >= 999.5 and unit < len(_kUnits) - 1:
        size /= 1024.0
        unit += 1
    digits = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return "%s%.*f %s" % (sign, digits, size, _kUnits[unit])


def change_of(size):
    return "0 B" if not size else text_of(size) if size < 0 else "+" + text_of(size)
