"""The few fields of a pprof profile that jax.profiler.device_memory_profile fills: stacks of live buffers with their bytes. Bounded in everything; what is not as expected is None."""

import zlib

kMost = 32 << 20  # bytes, uncompressed
kSamples = 50000
kDeep = 64


def read(data):
    """[(stack, count, bytes, labels)]: stack of (file, line, function), innermost first; labels: name to text. None: it is no such profile."""
    try:
        text = zlib.decompressobj(wbits=31).decompress(data, kMost) if data[:2] == b"\x1f\x8b" else bytes(data[:kMost])
        strings, functions, locations, samples = [], {}, {}, []
        for field, value in _fields(text):
            if field == 6:
                strings.append(value.decode("utf-8", "replace"))
            elif field == 5:
                part = dict(_fields(value))
                functions[part.get(1, 0)] = (part.get(4, 0), part.get(2, 0))
            elif field == 4:
                locations[_first(value, 1)] = [(_first(line, 1), _first(line, 2)) for number, line in _fields(value) if number == 4]
            elif field == 2 and len(samples) < kSamples:
                samples.append(value)
        return [_sample(value, strings, functions, locations) for value in samples]
    except (IndexError, KeyError, ValueError, TypeError, zlib.error):
        return None


def _sample(text, strings, functions, locations):
    places, values, labels = [], [], {}
    for field, value in _fields(text):
        if field == 1:
            places += _numbers(value)
        elif field == 2:
            values += _numbers(value)
        elif field == 3:
            part = dict(_fields(value))
            labels[strings[part.get(1, 0)]] = strings[part.get(2, 0)]
    stack = []
    for place in places[:kDeep]:
        for function, line in locations[place]:
            file, name = functions[function]
            stack.append((strings[file], line, strings[name]))
    return stack, values[0], values[1], labels


def _first(text, wanted):
    return next((value for field, value in _fields(text) if field == wanted), 0)


def _numbers(value):
    """Of a repeated field, packed or not."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(number)
    return found


def _fields(text):
    """(number of the field, value): a number, or bytes."""
    at = 0
    while at < len(text):
        key, at = _varint(text, at)
        if key & 7 == 0:
            value, at = _varint(text, at)
        elif key & 7 == 2:
            size, at = _varint(text, at)
            if size > len(text) - at:
                raise ValueError
            value, at = text[at:at + size], at + size
        elif key & 7 in (1, 5):
            size = 8 if key & 7 == 1 else 4
            value, at = text[at:at + size], at + size
        else:
            raise ValueError
        yield key >> 3, value


def _varint(text, at):
    number = shift = 0
    while True:
        byte = text[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError
