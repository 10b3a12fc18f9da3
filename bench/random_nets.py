#!/usr/bin/env python3
"""Fast in general, or on five benchmarks only? Ten networks drawn at random (channels 8-96, kernels 1-7, odd image sizes, widths
17-1,500), each trained from the JSON that Keras writes, and its rate set beside that of its nearest built-in.

  random_nets.py [--seed N] [--count 10] [--rounds 3] [--threads N] [--build FOLDER]

Rate: floating-point operations of a step (forward, gradient of weights and inputs; convolutions counted as direct ones) over
the least time of a step. Nearest: among the built-ins of the same kind (most multiply-adds of a step in convolutions, or in dense layers) the one
with the least distance in (log multiply-adds of a step, log multiply-adds per weight value). The bar is half of its rate."""
import argparse
import json
import math
import os
import random
import subprocess
import sys

from works import WORKS

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PEERS = os.path.join(os.environ.get("MILLPOND_PEERS", os.path.join(ROOT, ".venv-peers")), "bin", "python")
BUILTINS = ("tiny", "mlp_small", "mlp_large", "mlp_784", "cnn_224", "resnet50")


def draw(rng, convolutional):
    """A network as plain data: input shape, layers, batch."""
    layers = []
    if convolutional:
        size = rng.randrange(19, 72, 2)
        shape = [size, size + rng.choice([0, 2, 4]), rng.choice([1, 3, rng.randint(8, 32)])]
        height, width, _ = shape
        for _ in range(rng.randint(1, 3)):
            kernel = rng.randint(1, 7)
            padding = rng.choice(["valid", "same"])
            if padding == "valid" and min(height, width) < kernel + 4:
                padding = "same"
            layers.append(["conv", rng.randint(8, 96), kernel, padding])
            if padding == "valid":
                height, width = height - kernel + 1, width - kernel + 1
            if min(height, width) >= 8 and rng.random() < 0.6:
                layers.append(["pool", 2])
                height, width = height // 2, width // 2
        layers.append(["flatten"])
        if rng.random() < 0.5:
            layers.append(["dense", rng.randint(17, 300), "relu"])
        return {"shape": shape, "layers": layers + [["dense", rng.randint(2, 100), "softmax"]], "batch": rng.choice([8, 16, 24, 32])}
    layers = [["dense", rng.randint(17, 1500), "relu"] for _ in range(rng.randint(1, 4))]
    return {"shape": [rng.randint(17, 1500)], "layers": layers + [["dense", rng.randint(2, 100), "softmax"]],
            "batch": rng.choice([16, 31, 32, 50, 64, 100, 128])}


def arithmetic(net):
    """Multiply-adds of a sample forward, those of the first layer, those of convolutions, and weight values."""
    shape, macs, first, convolved, values = list(net["shape"]), 0, None, 0, 0
    for layer in net["layers"]:
        work = 0
        if layer[0] == "conv":
            _, filters, kernel, padding = layer
            height, width, channels = shape
            if padding == "valid":
                height, width = height - kernel + 1, width - kernel + 1
            work = height * width * kernel * kernel * channels * filters
            values += kernel * kernel * channels * filters + filters
            shape = [height, width, filters]
            convolved += work
        elif layer[0] == "pool":
            shape = [shape[0] // 2, shape[1] // 2, shape[2]]
        elif layer[0] == "flatten":
            shape = [math.prod(shape)]
        else:
            work = shape[0] * layer[1]
            values += work + layer[1]
            shape = [layer[1]]
        macs += work
        first = work if first is None else first
    return macs, first, convolved, values


def text(net):
    words = ["x".join(map(str, net["shape"]))]
    for layer in net["layers"]:
        words.append({"conv": lambda l: f"c{l[1]}k{l[2]}{'s' if l[3] == 'same' else ''}", "pool": lambda l: "p2", "flatten": lambda l: "",
                      "dense": lambda l: f"d{l[1]}"}[layer[0]](layer))
    return "-".join(w for w in words if w)


def write_json(file):
    """Runs with the peers' Python: reads networks, writes Keras's own JSON of each."""
    os.environ["KERAS_BACKEND"] = "jax"
    from keras import Input, Sequential, layers as L

    with open(file) as f:
        nets = json.load(f)
    for net in nets:
        stack = [Input(net["shape"])]
        for layer in net["layers"]:
            if layer[0] == "conv":
                stack.append(L.Conv2D(layer[1], layer[2], padding=layer[3], activation="relu"))
            elif layer[0] == "pool":
                stack.append(L.MaxPooling2D(layer[1]))
            elif layer[0] == "flatten":
                stack.append(L.Flatten())
            else:
                stack.append(L.Dense(layer[1], layer[2]))
        model = Sequential(stack)
        assert model.count_params() == net["values"], (model.count_params(), net)
        with open(net["file"], "w") as out:
            out.write(model.to_json())


def train(args, model, *more):
    done = subprocess.run([os.path.join(args.build, "bin", "millpond"), "train", model, "--synthetic", "--epochs", "4", "--threads", str(args.threads),
                           "--json", "-", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"bench: millpond train {model} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--write-json":
        return write_json(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    folder = os.path.join(args.build, "bench", "random")
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(args.seed)
    nets = []
    for i in range(args.count):
        net = draw(rng, i % 2 == 0)
        net["macs"], net["first"], convolved, net["values"] = arithmetic(net)
        net.update(name=text(net), file=os.path.join(folder, f"net{i}.json"), best=math.inf)
        step = 3 * net["macs"] - net["first"]  # the first layer has no gradient of its input
        net["flops"] = 2 * net["batch"] * step
        net["convolutional"] = 2 * (3 * convolved - (net["first"] if net["layers"][0][0] == "conv" else 0)) > step
        nets.append(net)
    listing = os.path.join(folder, "nets.json")
    with open(listing, "w") as out:
        json.dump(nets, out)
    print("bench: Keras writes the configurations", file=sys.stderr)
    subprocess.run([PEERS, os.path.abspath(__file__), "--write-json", listing], check=True)

    builtins = {name: {"work": WORKS[name], "best": math.inf} for name in BUILTINS}
    for i in range(args.rounds):
        for j, net in enumerate(nets):
            print(f"\r\033[Kbench: round {i + 1} of {args.rounds}, network {j + 1} of {len(nets)}", end="", file=sys.stderr, flush=True)
            seen = train(args, net["file"], "--loss", "sparse_categorical_crossentropy", "--batch", str(net["batch"]))
            loss = seen["loss_per_epoch"]
            if not loss[-1] < loss[0]:
                print(f"\nbench: {net['name']}: the loss does not fall: {loss}", flush=True)
            net["best"] = min(net["best"], seen["us_per_step_min"])
        for name, b in builtins.items():
            print(f"\r\033[Kbench: round {i + 1} of {args.rounds}, {name}", end="", file=sys.stderr, flush=True)
            b["best"] = min(b["best"], train(args, name)["us_per_step_min"])
    print("\r\033[K", end="", file=sys.stderr)

    rates = {name: b["work"].flops_per_step / b["best"] / 1e3 for name, b in builtins.items()}
    print("built-in       GFLOP/s   multiply-adds a step   per value")
    for name, b in builtins.items():
        w = b["work"]
        print(f"{name:<12} {rates[name]:>9.4g} {w.macs * w.batch:>22,} {w.macs * w.batch / w.parameters:>11,.0f}")
    print(f"\n{'network':<44} {'batch':>5} {'us/step':>10} {'GFLOP/s':>8}  {'nearest':<10} {'its rate':>8} {'share':>6}")
    missed = 0
    for net in nets:
        def distance(name):
            w = WORKS[name]
            return math.hypot(math.log(w.macs * w.batch / (net["macs"] * net["batch"])),
                              math.log(w.macs * w.batch / w.parameters / (net["macs"] * net["batch"] / net["values"])))
        nearest = min((n for n in BUILTINS if (len(WORKS[n].shape) == 3) == net["convolutional"]), key=distance)
        net["gflops"], net["nearest"] = net["flops"] / net["best"] / 1e3, nearest
        net["share"] = net["gflops"] / rates[nearest]
        missed += net["share"] < 0.5
        print(f"{net['name']:<44} {net['batch']:>5} {net['best']:>10.4g} {net['gflops']:>8.4g}  {nearest:<10} {rates[nearest]:>8.4g} {net['share']:>5.2f}x"
              + ("" if net["share"] >= 0.5 else "  BELOW HALF"))
    with open(os.path.join(args.build, "bench_random.json"), "w") as out:
        json.dump({"seed": args.seed, "threads": args.threads, "nets": nets, "builtins": rates}, out, indent=1)
    print(f"\nbench: {'none is below half of its nearest built-in' if not missed else f'{missed} below half of their nearest built-in'}")


main()
