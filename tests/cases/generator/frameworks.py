"""What is particular to torch, Keras, TensorFlow, JAX and matplotlib: their holders, their work, and loops that are theirs (fit, DataLoader)."""
from .holders import Holder
from .parts import Part
from .text import indent

TORCH, JAX, TENSORFLOW, KERAS, NUMPY = ("numpy", "torch"), ("numpy", "jax"), ("numpy", "tensorflow"), ("numpy", "tensorflow", "keras"), ("numpy",)
WEIGHTS = [((), 28), (NUMPY, 44), (TORCH, 13), (JAX, 4), (TENSORFLOW, 3), (KERAS, 8)]
PYTHON = {TORCH: "system", JAX: "peers", TENSORFLOW: "peers", KERAS: "peers"}
NAMES = {(): "plain", NUMPY: "numpy", TORCH: "torch", JAX: "jax", TENSORFLOW: "tensorflow", KERAS: "keras"}


def graph_of_loss(rng, size):
    """Rows, inputs and units of a layer whose graph keeps about so many bytes: the input of the first layer and the output of tanh, in four bytes each."""
    inside, units = rng.choice([16, 32, 64]), rng.choice([64, 128, 256])
    rows = max(2, int(size / 4 / (inside + units)))
    return {"rows": rows, "inside": inside, "units": units}, rows * (inside + units) * 4, "graph"


def layer_output(rng, size):
    inside, units = rng.choice([16, 32, 64]), rng.choice([64, 128, 256])
    rows = max(2, int(size / 4 / units))
    return {"rows": rows, "inside": inside, "units": units}, rows * units * 4, "tensor"


def predictions(rng, size):
    """Float32 outputs of a model of eight inputs."""
    units = rng.choice([16, 64])
    rows = max(8, int(size / 4 / units))
    return {"rows": rows, "units": units}, rows * units * 4, "ndarray"


def weights_of_model(rng, size):
    """A Keras model with a square layer of so many bytes; what Keras adds to it is a few ten kilobytes."""
    side = max(700, int((size / 4) ** 0.5))
    return {"side": side}, side * side * 4 + side * 4 + 60_000, "model"


def unknown(rng, size):
    return {}, None, "compiled"


MODEL = "torch.nn.Sequential(torch.nn.Linear(«inside», «units»), torch.nn.Tanh(), torch.nn.Linear(«units», 1))"
EXTRA = {
    TORCH: [
        Holder("losses with graphs", "$rows = torch.randn(«rows», «inside»)\n$gap = ((§net($rows) - 1.0) ** 2).mean()  #@born\n§items.append($gap)  #@blame", f"§net = {MODEL}\n§items = []", imports=("import torch",), cause="C36", weight=6, own=graph_of_loss, many=False),
        Holder("sum of losses with graphs", "$rows = torch.randn(«rows», «inside»)\n$gap = ((§net($rows) - 1.0) ** 2).mean()  #@born\n§total = §total + $gap  #@blame", f"§net = {MODEL}\n§total = torch.zeros(())", names=("total",), imports=("import torch",), cause="C36", weight=4,
               own=graph_of_loss, many=False),
        Holder("hook", "with torch.no_grad():\n    §net(torch.randn(«rows», «inside»))  #@born", "§net = torch.nn.Linear(«inside», «units»)\n§items = []\n§net.register_forward_hook($do_hook(§items))",
               "def $do_hook($where):\n    def $do_keep($layer, $given, $out):\n        $where.append($out)  #@blame\n\n    return $do_keep", names=("items", "where"), imports=("import torch",), cause="C38", weight=5, own=layer_output),
        Holder("hook", "with torch.no_grad():\n    §net(torch.randn(«rows», «inside»))", "§net = $Layer(«inside», «units»)", "class $Layer(torch.nn.Module):\n    def __init__(self, $into, $out):\n        super().__init__()\n        self.$core = torch.nn.Linear($into, $out)\n        self.$items = []\n\n"
               "    def forward(self, $rows):\n        $made = self.$core($rows)  #@born\n        self.$items.append($made)  #@blame\n        return $made", names=("items",), imports=("import torch",), weight=4, own=layer_output),
    ],
    KERAS: [
        Holder("predictions in a callback", "§items.append(self.model.predict_on_batch(np.full((«rows», 8), «i» * 0.01, np.float32)).repeat(«units», axis=1))  #@blame #@born", "§items = []", imports=("import numpy as np",), cause="C14", weight=14, own=predictions, many=False, only="keras fit"),
        Holder("attribute of a callback", "§items.append(np.full((«rows», «units»), «i», np.float32))  #@blame #@born", "§items = []", imports=("import numpy as np",), cause="C14", weight=14, own=predictions, only="keras fit"),
        Holder("models", "§items.append($do_build())  #@blame", "§items = []", "def $do_build():\n    $net = keras.Sequential([keras.Input((«side»,)), keras.layers.Dense(«side»)])  #@born\n    return $net", imports=("import keras",), weight=8, own=weights_of_model, many=False),
    ],
    TENSORFLOW: [
        Holder("traces", "§last = $do_step(§rows, «i»)  #@blame #@born", "§rows = tf.ones([16, 8])\n§last = None",
               "@tf.function\ndef $do_step($rows, $key):  #@blame\n    for $n in range(6):\n        $rows = tf.tanh($rows * $key + 1.0)\n    return tf.reduce_sum($rows)", names=("do_step",), words=("tensorflow", "function", "trace"), imports=("import tensorflow as tf",), cause="C1", weight=12, own=unknown,
               many=False, native=True, seconds=0.07),
    ],
    JAX: [
        Holder("compilations", "§last = $do_step(jnp.ones(100 + «i»))  #@blame #@born", "§last = None", "@jax.jit\ndef $do_step($rows):  #@blame\n    return jnp.tanh($rows * 2.0 + 1.0).sum()", names=("do_step",), words=("jax", "compil", "cache"), imports=("import jax", "import jax.numpy as jnp"),
               cause="C42", weight=20, own=unknown, many=False, native=True, seconds=0.25),
    ],
    NUMPY: [
        Holder("figures", "$figure, $axes = plt.subplots(figsize=(6, 4))  #@blame #@born\n$axes.plot(np.arange(1000) * «i»)\n$figure.savefig(io.BytesIO())  #@born", "", names=(), words=("pyplot", "matplotlib", "figure", "Gcf", "figs"), imports=("import io", "import matplotlib.pyplot as plt", "import numpy as np"), cause="C16",
               weight=2, own=unknown, many=False, only="peers", seconds=0.15),
    ],
}

WORK = {
    TORCH: [("", "§net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))\n§steps = torch.optim.SGD(§net.parameters(), lr=0.01)",
             "$rows = torch.randn(64, 32)\n§steps.zero_grad()\n$gap = ((§net($rows) - $rows[:, :1]) ** 2).mean()\n$gap.backward()\n§steps.step()\n§loss = $gap.item()", ("import torch",), 7e-4),
            ("", "§net = torch.nn.Linear(48, 8)\n§steps = torch.optim.Adam(§net.parameters(), lr=0.001)", "$rows = torch.randn(128, 48)\n$gap = §net($rows).pow(2).mean()\n§steps.zero_grad()\n$gap.backward()\n§steps.step()\n§loss = float($gap.detach())", ("import torch",), 8e-4),
            ("", "§kernel = torch.randn(96, 96) * 0.1\n§state = torch.ones(96)", "§state = torch.tanh(§kernel @ §state + 0.1)\n§loss = §state.mean().item()", ("import torch",), 4e-5)],
    JAX: [("@jax.jit\ndef $do_update($w, $rows):\n    $gap = $rows @ $w - $rows[:, 0]\n    return $w - 0.01 * ($rows.T @ $gap) / len($gap), ($gap ** 2).mean()", "§w = jnp.zeros(32)\n§rows = jnp.asarray(np.random.default_rng(3).standard_normal((256, 32)), jnp.float32)",
           "§w, $gap = $do_update(§w, §rows)\n§loss = float($gap)", ("import jax", "import jax.numpy as jnp", "import numpy as np"), 1.5e-4)],
    TENSORFLOW: [("", "§w = tf.Variable(tf.zeros([32, 1]))\n§rows = tf.random.normal([256, 32])", "with tf.GradientTape() as $tape:\n    $gap = tf.reduce_mean((§rows @ §w - 1.0) ** 2)\n§w.assign_sub(0.01 * $tape.gradient($gap, §w))\n§loss = float($gap)", ("import tensorflow as tf",), 3e-3)],
}


def work(draw, seconds):
    rng, scope = draw.rng, draw.scope
    top, begin, each, imports, cost = rng.choice(WORK[draw.numpy])
    n = max(1, int(seconds / cost))
    if n > 1:
        each = f"for $n in range({n}):\n" + indent(each)
    keep = lambda text: scope.fill(text).replace("§" + scope["loss"], "§loss")
    return Part("work", imports, keep(top), keep(begin), keep(each), per_step=True, seconds=n * cost)


def fit(rng, names, shape, parts):
    """A Keras callback that runs the parts at the end of batches and epochs, and the run that fits."""
    Name, run, turn, batch, epoch = names.draw("Name"), names.draw("do_run"), names.draw("turn"), names.draw("batch"), names.draw("epoch")
    fix = lambda text, number, index: text.replace("«i»", index).replace("«r»", number).replace("§", "self.")
    order = parts[:]
    rng.shuffle(order)
    begin = "\n".join(part.begin for part in order if part.begin).replace("§", "self.")
    steps = "\n".join(fix(part.each, f"self.{turn}", f"(self.{turn} * {shape.steps} + {batch})") for part in order if part.each and part.per_step)
    rounds = "\n".join(fix(part.each, epoch, epoch) for part in order if part.each and not part.per_step)
    if shape.pause >= 0.0005:
        steps += f"\ntime.sleep({shape.pause:.4f})"
    width, rows = rng.choice([8, 8]), shape.steps * 32
    text = f"class {Name}(keras.callbacks.Callback):\n    def __init__(self):\n        super().__init__()\n        self.{turn} = 0\n{indent(begin, 2)}\n\n    def on_epoch_begin(self, {epoch}, logs=None):\n        self.{turn} = {epoch}\n\n"
    text += f"    def on_train_batch_end(self, {batch}, logs=None):\n{indent(steps.strip() or 'return None', 2)}\n"
    if rounds:
        text += f"\n    def on_epoch_end(self, {epoch}, logs=None):\n{indent(rounds, 2)}\n"
    x, net = names.draw("x"), names.draw("net")
    layers = rng.choice(["keras.layers.Dense(16, activation=\"tanh\"), keras.layers.Dense(1)", "keras.layers.Dense(32, activation=\"relu\"), keras.layers.Dense(8), keras.layers.Dense(1)", "keras.layers.Dense(1)"])
    text += f"""

def {run}():
    {x} = np.random.default_rng({rng.randrange(100)}).standard_normal(({rows}, {width})).astype(np.float32)
    {net} = keras.Sequential([keras.Input(({width},)), {layers}])
    {net}.compile(optimizer="{rng.choice(['sgd', 'adam'])}", loss="mse")
    {net}.fit({x}, {x}[:, :1], batch_size=32, epochs={shape.rounds}, verbose={2 if shape.every else 0}, callbacks=[{Name}()])"""
    return text, run, ("import keras", "import numpy as np", *(("import time",) if shape.pause >= 0.0005 else ()))


def loader(rng, names, shape, parts, printed):
    """A data set whose items run the parts in a worker of a DataLoader, and the training loop in the main process."""
    box, one, ready, Data, counter, count = names.draw("box"), names.draw("do_one"), names.draw("do_ready"), names.draw("Data"), names.draw("COUNTER"), names.draw("count")
    run, source, net, epoch, batch, index, loss = (names.draw(hole) for hole in ("do_run", "source", "net", "epoch", "batch", "index", "value"))
    number = f"({count} // {shape.steps})" if shape.steps > 1 else count
    order = parts[:]
    rng.shuffle(order)
    fix = lambda text, call: text.replace("«i»", call).replace("«r»", number).replace("§", box + ".")
    each = [fix(part.each, count) for part in order if part.each and part.per_step]
    rounds = "\n".join(fix(part.each, number) for part in order if part.each and not part.per_step)
    if rounds:
        each.append(f"if {count} % {shape.steps} == {shape.steps - 1}:\n{indent(rounds)}" if shape.steps > 1 else rounds)
    begin = "\n".join(["§loss = 0.0", *(part.begin for part in order if part.begin)]).replace("§", box + ".")
    if shape.pause >= 0.0002:
        each.append(f"time.sleep({shape.pause:.4f})")
    line = printed.replace("«r»", epoch).replace("§loss", loss)
    body = "\n".join(each)
    text = f"""{box} = types.SimpleNamespace()
{counter} = itertools.count()


def {ready}():
{indent(begin)}


def {one}({count}):
    if not vars({box}):
        {ready}()
{indent(body)}
    return {box}.loss


class {Data}(torch.utils.data.Dataset):
    def __len__(self):
        return {shape.steps * shape.workers}

    def __getitem__(self, {index}):
        {one}(next({counter}))
        return torch.full((4,), float({index}))


def {run}():
    {source} = torch.utils.data.DataLoader({Data}(), batch_size={shape.steps}, num_workers={shape.workers}, persistent_workers=True)
    {net} = torch.nn.Linear(4, 1)
    {loss} = 0.0
    for {epoch} in range({shape.rounds}):
        for {batch} in {source}:
            {loss} = float({net}({batch}).pow(2).mean().detach())"""
    if line:
        text += "\n" + indent(line, 2)
    return text, run, ("import itertools", "import torch", "import types", *(("import time",) if shape.pause >= 0.0002 else ()))
