"""What a program is for: small computations that take a known time and keep nothing. Each sets §loss."""
from .parts import Part
from .text import indent

# (what it begins with, one repetition, seconds of it on a 2.5 GHz core)
NUMPY = [
    ("§x = np.random.default_rng(«seed»).standard_normal((1000, 32))\n§w = np.zeros(32)", "$gap = §x @ §w - §x[:, 0]\n§w -= 0.01 * (§x.T @ $gap) / len($gap)\n§loss = float(($gap ** 2).mean())", 1.2e-4),
    ("§grid = np.random.default_rng(«seed»).random((500, 16))", "$part = np.tanh(§grid * 0.5)\n§loss = float($part.std())", 1e-4),
    ("§signal = np.sin(np.arange(8192) * 0.01)", "$waves = np.abs(np.fft.rfft(§signal))\n§loss = float($waves.max() / len($waves))", 1.5e-4),
    ("§series = np.random.default_rng(«seed»).random(2000)", "$order = np.argsort(§series)\n§series = np.roll(§series, 1)\n§loss = float(§series[$order[0]])", 2e-4),
    ("§kernel = np.random.default_rng(«seed»).standard_normal((48, 48)) * 0.1\n§state = np.ones(48)", "§state = np.tanh(§kernel @ §state + 0.1)\n§loss = float(§state.mean())", 1.2e-5),
]
PLAIN = [
    ("§w = [0.1] * 24\n§turn = 0", "for $n in range(«n»):\n    §turn += 1\n    $gap = sum(§w) * 0.01 - §turn % 7\n    §w[$n % 24] -= 0.001 * $gap\n§loss = sum(§w) / len(§w)", 8e-7),
    ("§words = [\"w%d\" % (n * 7 % 41) for n in range(200)]", "$counts = {}\nfor $n in range(«n»):\n    $word = §words[$n % 200]\n    $counts[$word] = $counts.get($word, 0) + 1\n§loss = max($counts.values()) / «n»", 1.6e-7),
    ("§level = 0.4", "for $n in range(«n»):\n    §level = 3.7 * §level * (1.0 - §level)\n§loss = §level", 1.4e-7),
    ("§state = «seed»", "$total = 0.0\nfor $n in range(«n»):\n    §state = (§state * 1103515245 + 12345) % 2147483648\n    $total += §state / 2147483648\n§loss = $total / «n»", 2.4e-7),
    ("§rows = [[(r * c) % 11 for c in range(12)] for r in range(12)]", "$total = 0\nfor $n in range(«n» // 100 + 1):\n    $sums = [sum(a * b for a, b in zip($row, §rows[$n % 12])) for $row in §rows]\n    $total += max($sums)\n§loss = $total / «n»", 1.3e-7),
]


def work(draw, seconds):
    """A part that computes for about so many seconds a call."""
    rng, scope = draw.rng, draw.scope
    begin, each, cost = rng.choice(NUMPY if draw.numpy else PLAIN)
    n = max(1 if draw.numpy else 20, int(seconds / cost))
    if draw.numpy and n > 1:
        each = "for $n in range(«n»):\n" + indent(each)
    keep = lambda text: scope.fill(text, n=n, seed=rng.randrange(1000)).replace("§" + scope["loss"], "§loss")  # the computation's loss is the run's
    return Part("work", ("import numpy as np",) if draw.numpy else (), begin=keep(begin), each=keep(each), per_step=True, seconds=n * cost)


def model(draw):
    """A model of each round: made, fitted a little, and dropped for the next."""
    rng, scope = draw.rng, draw.scope
    side = rng.choice([20, 60, 120, 300])
    if draw.numpy:
        make, step = f"np.full(({side}, {side}), 0.01)", "self.$w = np.tanh(self.$w + 0.1)"
    else:
        make, step = f"[[0.01] * {side} for $n in range({side})]", "self.$w[0] = [value * 0.9 + 0.1 for value in self.$w[0]]"
    top = f"class $Model:\n    def __init__(self):\n        self.$w = {make}\n        self.$age = 0\n\n    def $do_fit(self):\n        for $n in range(3):\n            {step}\n            self.$age += 1\n        return self.$age"
    return Part("model", ("import numpy as np",) if draw.numpy else (), scope.fill(top), scope.fill("§model = None"), scope.fill("§model = $Model()\n§model.$do_fit()"), seconds=1e-3)
