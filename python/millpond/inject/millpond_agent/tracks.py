"""A size over the looks at a program."""
import math


kAligned = 3  # rises: from then on the second look is the first


class Track:
    """First and last size, how often it rose and fell, and by multiples of what (`step`). The first look is made wherever in a round the program is, all others where one ends: what came
    between the first two is no round's, and is left out as soon as there are others."""

    __slots__ = ("first_look", "first_size", "second", "last_look", "size", "rises", "falls", "rose_at", "step")

    def __init__(self, look, size):
        self.first_look = self.last_look = look
        self.first_size = self.size = size
        self.second = None
        self.rises = self.falls = self.step = 0
        self.rose_at = -2

    def sees(self, look, size):
        """The next size; True while it only rises, at this look or the one before."""
        if size > self.size:
            self.rises += 1
            self.step = math.gcd(self.step, int(size - self.size))
            self.rose_at = look
        elif size < self.size:
            self.falls += 1
        self.last_look, self.size = look, size
        self.second = self.second or (look, size)
        if self.rises == kAligned:
            self.first_look, self.first_size = self.second
        return not self.falls and self.rose_at >= look - 1
