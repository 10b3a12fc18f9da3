"""Two processes on one GPU: one keeps what it makes, the other does not."""
import subprocess
import sys


def main():
    if len(sys.argv) == 1:
        children = [subprocess.Popen([sys.executable, __file__, what]) for what in ("keeps", "does_not")]
        sys.exit(max(child.wait() for child in children))
    import torch
    from common import Rounds

    kept = []
    for _ in Rounds(45):
        for _ in range(3):
            made = torch.randn(1 << 20, device="cuda").square()
            if sys.argv[1] == "keeps":
                kept.append(made)


main()
