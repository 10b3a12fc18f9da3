"""Reads a .probe file (src/probe/shared.h): what is alive, with its Python frames."""
import struct

LIVE, STACKS, FRAMES, CODES, TEXT_BYTES = 1 << 16, 1 << 14, 1 << 19, 1 << 15, 4 << 20
LIVE_AT = 4096
STACKS_AT = LIVE_AT + 48 * LIVE
FRAMES_AT = STACKS_AT + 48 * STACKS
CODES_AT = FRAMES_AT + 8 * FRAMES
TEXT_AT = CODES_AT + 48 * CODES
RING_AT = TEXT_AT + TEXT_BYTES
HEADER = (
    "version bytes pid parent start_ns ended_ns python agent interval exact_from samples frees lost_live lost_stacks "
    "lost_codes lost_records probe_ns probe_bytes mapped_now"
).split()
PYTHON = 3
FRAMES_SEEN, FRAMES_NOT_KNOWN, FREE_THREADED = 1, 2, 4


class Live:
    def __init__(self, file, values):
        self.file = file
        self.address, self.size, self.bytes, self.blocks, self.stack, self.born_ms, self.kind, _ = values

    def frames(self):
        """Python: (function, file, line); native: an address."""
        return self.file.frames(self.stack)

    def python(self):
        return [frame for frame in self.frames() if isinstance(frame, tuple)]


class ProbeFile:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        values = struct.unpack_from("<QQiiQQiiQQQQQQQQQQQ16QIIIIQQQQQQQQ", self.data, 0)
        self.header = dict(zip(HEADER, values))
        self.stacks, self.frames_used, self.codes, self.text = values[35:39]
        self.write, self.read = values[40:42]
        self.python_frames = values[46]

        table = memoryview(self.data)[LIVE_AT:STACKS_AT]
        self.entries = [Live(self, values) for values in struct.iter_unpack("<QQQfIIIQ", table) if values[0] > 1]

    def live(self):
        return self.entries

    def stack_flags(self, number):
        return struct.unpack_from("<H", self.data, STACKS_AT + 48 * number + 14)[0]

    def frames(self, number):
        first, count = struct.unpack_from("<IH", self.data, STACKS_AT + 48 * number + 8)
        return [self.frame(x) for x in struct.unpack_from("<%dQ" % count, self.data, FRAMES_AT + 8 * first)]

    def frame(self, value):
        if not value >> 63:
            return value
        code = CODES_AT + 48 * ((value >> 32) & 0x7FFFFFFF)
        file_at, file_size, name_at, name_size = struct.unpack_from("<IIII", self.data, code + 28)
        name = self.data[TEXT_AT + name_at : TEXT_AT + name_at + name_size].decode()
        file = self.data[TEXT_AT + file_at : TEXT_AT + file_at + file_size].decode()
        return name, file, value & 0xFFFFFFFF
