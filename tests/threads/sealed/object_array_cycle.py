"""An object array in a reference cycle is never collected.
numpy/numpy#6581
Simulates a lattice of cells that know their lattice; a new lattice is made in each sweep."""
import gc
import time

import numpy as np


class Cell:
    __slots__ = ("parent", "spin", "field")

    def __init__(self, parent, spin):
        self.parent = parent
        self.spin = spin
        self.field = np.full(64, float(spin))


class Lattice:
    def __init__(self, size, rng):
        self.cells = np.empty((size, size), dtype=object)
        for x in range(size):
            for y in range(size):
                self.cells[x, y] = Cell(self, int(rng.integers(0, 2)) * 2 - 1)

    def energy(self):
        return sum(cell.spin * cell.field[0] for cell in self.cells.flat)


def main():
    rng = np.random.default_rng(1)
    for sweep in range(60):
        lattice = Lattice(30, rng)
        energy = lattice.energy()
        del lattice
        gc.collect()
        print(f"sweep {sweep}: energy {energy}", flush=True)
        time.sleep(0.08)


if __name__ == "__main__":
    main()
