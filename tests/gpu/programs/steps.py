"""A step that is bound by launches: many small kernels. Prints microseconds for a step, the median of its rounds."""
import statistics
import sys
import time

import torch


def main():
    net = torch.nn.Sequential(*[layer for _ in range(12) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())], torch.nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x, y = torch.randn(32, 64, device="cuda"), torch.randn(32, 1, device="cuda")
    took = []
    for index in range(int(sys.argv[1])):
        begin = time.perf_counter()
        for _ in range(200):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - begin)
        print("epoch %d" % index, flush=True)
    rest = took[3:]
    print("step_us %.3f mean_us %.3f" % (1e6 * statistics.median(rest) / 200, 1e6 * statistics.mean(rest) / 200), flush=True)


main()
