"""The works that are timed: table W (samples, batch, epochs, shapes), their arithmetic, and the bars they are held to."""
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Work:
    name: str
    samples: int
    batch: int
    epochs: int
    shape: tuple
    classes: int  # 2: one sigmoid output and labels 0 or 1
    macs: int  # multiply-adds of a sample, forward
    first_macs: int  # of the first layer, whose input needs no gradient
    parameters: int
    peers: tuple = ("keras-tf", "keras-jax", "jax")
    bars: dict = field(default_factory=dict)

    @property
    def steps(self):
        return self.samples // self.batch

    @property
    def flops_per_step(self):
        """Forward, gradient of the weights, gradient of the inputs (not for the first layer); two for a multiply-add.
        Convolutions are counted as direct ones, whatever algorithm computes them."""
        return 2 * self.batch * (3 * self.macs - self.first_macs)


def dense(*widths):
    pairs = list(zip(widths, widths[1:]))
    return sum(a * b for a, b in pairs), pairs[0][0] * pairs[0][1], sum(a * b + b for a, b in pairs)


def mlp(name, samples, batch, epochs, widths, bars):
    macs, first, parameters = dense(*widths)
    return Work(name, samples, batch, epochs, (widths[0],), 2 if widths[-1] == 1 else widths[-1], macs, first, parameters, bars=bars)


CONV = 222 * 222 * 3 * 3 * 3 * 32
FLAT = 111 * 111 * 32

# A bar is (quantity, against whom, ratio): "best" is the fastest of the peers. Design section 7.
WORKS = {
    w.name: w
    for w in (
        mlp("tiny", 16384, 8, 5, (4, 8, 1), {("step", "jax"): 100, ("step", "keras-tf"): 1000}),
        mlp("mlp_small", 10016, 32, 5, (100, 64, 1),
            {("step", "jax"): 4, ("step", "keras-jax"): 15, ("step", "keras-tf"): 60, ("start", "keras-tf"): 50,
             ("memory", "keras-tf"): 20, ("memory", "jax"): 10}),
        mlp("mlp_large", 10048, 64, 5, (200, 512, 256, 1), {("step", "best"): 2}),
        mlp("mlp_784", 12800, 128, 4, (784, 512, 512, 10), {("step", "best"): 1.4}),
        Work("cnn_224", 192, 32, 4, (224, 224, 3), 10, CONV + FLAT * 10, CONV, 896 + FLAT * 10 + 10,
             bars={("step", "keras-tf"): 4.5, ("memory", "keras-tf"): 6.5}),
        # 3.86 thousand million multiply-adds, 25.6 million values; the first layer has 112 * 112 * 49 * 3 * 64.
        Work("resnet50", 32, 8, 3, (224, 224, 3), 1000, 3_857_973_248, 112 * 112 * 49 * 3 * 64, 25_636_712, peers=("keras-tf",),
             bars={("step", "keras-tf"): 1, ("memory", "keras-tf"): 2}),
    )
}
DEFAULT = ("tiny", "mlp_small", "mlp_large", "mlp_784", "cnn_224")
