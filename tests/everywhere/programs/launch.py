"""A launcher as torchrun and `accelerate launch` are: it starts its ranks as programs of their own, hands a copy of its environment on, and waits for them."""
import os
import subprocess
import sys

count, program, *arguments = sys.argv[1:]
ranks = [subprocess.Popen([sys.executable, "-u", program, *arguments], env=dict(os.environ, RANK=str(rank), WORLD_SIZE=count)) for rank in range(int(count))]
sys.exit(max(rank.wait() for rank in ranks))
