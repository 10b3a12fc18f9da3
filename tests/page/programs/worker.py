"""A program whose own memory is flat, and which started a child that keeps more and more: what is shown must be the child's. The main process holds so much that all together hold little more."""
import os
import time


def hold(megabytes):
    block = bytearray(megabytes << 20)
    for i in range(0, len(block), 4096):
        block[i] = 1
    return block


def serve():
    answers = []
    for request in range(64):
        answers.append(hold(1))
        time.sleep(0.1)
    os._exit(0)


def main():
    pid = os.fork()
    if pid == 0:
        serve()
    model = hold(400)
    for epoch in range(48):
        batch = hold(2)
        batch[0] = model[0]
        time.sleep(0.12)
        print("epoch", epoch, flush=True)
    os.waitpid(pid, 0)


main()
