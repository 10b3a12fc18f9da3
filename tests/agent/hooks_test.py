"""Hooks on frameworks, with small stand-ins of the same shape: no framework is needed. The real ones: keras_test.py, jax_test.py."""

import unittest

from support import line_of, run

KERAS = {
    "lib/site-packages/keras/__init__.py": "__version__ = '3.15.1'\n",
    "lib/site-packages/keras/src/__init__.py": "",
    "lib/site-packages/keras/src/trainers/__init__.py": "",
    "lib/site-packages/keras/src/trainers/trainer.py": """
        class Trainer:
            def __init__(self):
                self.ready = True
            def compile(self, run_eagerly=False):
                pass
    """,
    "lib/site-packages/keras/src/callbacks/__init__.py": "from keras.src.callbacks.callback_list import CallbackList\n",
    "lib/site-packages/keras/src/callbacks/callback_list.py": """
        class CallbackList:
            def __init__(self, callbacks=()):
                self.callbacks = list(callbacks)
            def on_epoch_begin(self, epoch, logs=None):
                pass
            def on_epoch_end(self, epoch, logs=None):
                for callback in self.callbacks:
                    callback(epoch)
            def on_train_batch_end(self, batch, logs=None):
                pass
    """,
    "lib/site-packages/keras/src/backend/__init__.py": "",
    "lib/site-packages/keras/src/backend/common/__init__.py": "",
    "lib/site-packages/keras/src/backend/common/global_state.py": "def clear_session(free_memory=True):\n    pass\n",
    "lib/site-packages/keras/src/backend/tensorflow/__init__.py": "",
    "lib/site-packages/keras/src/backend/tensorflow/trainer.py": """
        import time
        from keras.src.callbacks import CallbackList
        from keras.src.trainers.trainer import Trainer
        class TensorFlowTrainer(Trainer):
            def fit(self, x=None, epochs=1, callbacks=()):
                callbacks = CallbackList(callbacks)
                for epoch in range(epochs):
                    callbacks.on_epoch_begin(epoch)
                    for batch in range(5):
                        time.sleep(0.01)
                        callbacks.on_train_batch_end(batch)
                    self.evaluate(x, _use_cached_eval_dataset=True)
                    callbacks.on_epoch_end(epoch)
                return "history"
            def evaluate(self, x=None, **kwargs):
                return 0.5
            def predict(self, x=None):
                return x
            def train_on_batch(self, x=None):
                if x == "bad":
                    raise ValueError("bad batch")
    """,
}
PATH = "import os, sys; sys.path.insert(0, os.environ['FOLDER'] + '/lib/site-packages')\n"


class Keras(unittest.TestCase):
    def test_phases_epochs_units_and_lines(self):
        text = PATH + (
            "from keras.src.backend.tensorflow.trainer import TensorFlowTrainer as Model\n"
            "from keras.src.backend.common.global_state import clear_session\n"
            "import keras\n"
            "def build():\n"
            "    model = Model()\n"
            "    model.compile()\n"
            "    return model\n"
            "for fold in range(3):\n"
            "    model = build()\n"
            "    assert model.fit(None, epochs=4) == 'history'\n"
            "for i in range(22):\n"
            "    model.predict(i)\n"
            "for i in range(4):\n"
            "    clear_session()\n"
            "    model.fit(None, epochs=1)\n"
            "model.train_on_batch()\n"
            "try:\n"
            "    model.train_on_batch('bad')\n"
            "except ValueError as error:\n"
            "    print(error)\n")
        result = run(text, files=KERAS)
        self.assertEqual((result.out, result.err), ("bad batch\n", ""))
        units = result.marks("end")[0]["units"]
        self.assertEqual(units, [82, 16, 3, 22, 0, 3, 0, 7])
        calls = result.calls()
        self.assertEqual(calls["fit", line_of(text, "epochs=4")]["count"], 3)
        self.assertEqual(calls["predict", line_of(text, "model.predict(i)")]["count"], 22)
        model = calls["model", line_of(text, "model = Model()")]
        self.assertEqual((model["count"], model["function"]), (3, "build"))
        self.assertEqual(model["loop"]["line"], line_of(text, "model = build()"))
        self.assertEqual(calls["compile", line_of(text, "model.compile()")]["count"], 3)
        self.assertNotIn("evaluate", [what for what, _ in calls])
        self.assertTrue(result.marks("validation", 1) and result.marks("validation", 2))
        self.assertEqual(len([mark for mark in result.marks("epoch", 4)]), 16)
        self.assertEqual(len(result.marks("fit", 1)), 7)
        self.assertEqual(len(result.marks("fit", 4)), 7)
        self.assertEqual({note["what"] for note in result.notes("advice")}, {"predict_in_loop", "clear_session_in_loop"})
        self.assertEqual(result.notes("framework")[0]["name"], "keras")

    def test_the_epoch_mark_comes_after_the_users_callbacks_and_printed_epochs_are_lines(self):
        text = PATH + (
            "from keras.src.backend.tensorflow.trainer import TensorFlowTrainer as Model\n"
            "kept = []\n"
            "def callback(epoch):\n"
            "    kept.append(os.urandom(50000))\n"
            "    print(f'epoch {epoch}: done')\n"
            "Model().fit(None, epochs=12, callbacks=[callback])\n")
        result = run(text, files=KERAS)
        self.assertEqual(result.err, "")
        order = [mark["mark"] for mark in result.marks() if mark["flags"] & 4 and mark["mark"] in ("epoch", "line")]
        self.assertEqual(order[:4], ["line", "epoch", "line", "epoch"])
        self.assertEqual(result.marks("end")[0]["units"][1], 12)
        self.assertEqual(result.containers()["kept"]["line"], line_of(text, "kept.append"))

    def test_arrays_are_noted(self):
        text = PATH + (
            "class Array:\n    shape = (10, 3)\n    dtype = 'float32'\n    nbytes = 120\n"
            "from keras.src.backend.tensorflow.trainer import TensorFlowTrainer as Model\n"
            "Model().fit(Array())\nModel().fit(x=Array())\n")
        notes = run(text, files=KERAS).notes("data")
        self.assertEqual([(note["what"], note["line"]) for note in notes], [("fit", line_of(text, "fit(Array())")), ("fit", line_of(text, "x=Array()"))])
        self.assertEqual(notes[0]["arrays"], [{"shape": [10, 3], "dtype": "float32", "bytes": 120, "type": "Array"}])


class Others(unittest.TestCase):
    def test_pyplot_figures(self):
        files = {
            "lib/site-packages/matplotlib/__init__.py": "__version__ = '3.11'\n",
            "lib/site-packages/matplotlib/_pylab_helpers.py": "class Gcf:\n    figs = {}\n",
            "lib/site-packages/matplotlib/pyplot.py": """
                from matplotlib._pylab_helpers import Gcf
                def figure():
                    Gcf.figs[len(Gcf.figs)] = bytearray(1000)
                def subplots():
                    figure()
                def gcf():
                    if not Gcf.figs:
                        figure()
            """,
        }
        text = PATH + ("import time\nimport matplotlib.pyplot as plt\nplt.gcf()\nfor epoch in range(24):\n    plt.subplots()\n    time.sleep(0.03)\n"
                       "    print('epoch', epoch)\n")
        result = run(text, files=files)
        line = line_of(text, "plt.subplots()")
        self.assertEqual(result.calls()["figure", line]["count"], 24)
        self.assertEqual(result.notes("advice")[0]["what"], "figures_open")
        self.assertEqual(result.containers()["pyplot figures"]["line"], line)
        self.assertGreater(max(note["values"].get("pyplot.figures", 0) for note in result.notes("counters")), 10)

    def test_jax_compilations(self):
        files = {
            "lib/site-packages/jax/__init__.py": "from jax._src import monitoring\n__version__ = '0.10'\n",
            "lib/site-packages/jax/_src/__init__.py": "",
            "lib/site-packages/jax/_src/monitoring.py": """
                _listeners = []
                def register_event_duration_secs_listener(listener):
                    _listeners.append(listener)
                def record_event_duration_secs(event, duration, **kwargs):
                    for listener in _listeners:
                        listener(event, duration, **kwargs)
            """,
        }
        text = PATH + ("import jax\nfor n in range(5):\n"
                       "    jax.monitoring.record_event_duration_secs('/jax/core/compile/backend_compile_duration', 0.1, fun_name='f')\n"
                       "jax.monitoring.record_event_duration_secs('/jax/other', 0.1)\n")
        result = run(text, files=files)
        self.assertEqual(result.calls()["jax_compile", line_of(text, "fun_name")]["count"], 5)
        self.assertEqual(result.marks("end")[0]["units"][4], 5)

    def test_torch_steps_in_both_ages(self):
        new = "hooks = []\nclass Handle:\n    def remove(self):\n        hooks.clear()\ndef register_optimizer_step_post_hook(hook):\n    hooks.append(hook)\n    return Handle()\n"
        old = ""
        for age, more, call in (("new", new, "[hook(self, (), {}) for hook in hooks]"), ("old", old, "None")):
            files = {
                "lib/site-packages/torch/__init__.py": "import torch.optim.optimizer\n__version__ = '2'\nclass cuda:\n    is_initialized = staticmethod(lambda: False)\nclass Tensor: pass\n",
                "lib/site-packages/torch/optim/__init__.py": "",
                "lib/site-packages/torch/optim/optimizer.py": more + "class Optimizer:\n    def __init__(self):\n        self._hook_for_profile()\n"
                "    def _hook_for_profile(self):\n        pass\nclass SGD(Optimizer):\n    def step(self):\n        " + call + "\n        return 7\n",
            }
            text = PATH + "from torch.optim.optimizer import SGD\nsgd = SGD()\nother = SGD()\nfor i in range(30):\n    assert sgd.step() == 7\n"
            result = run(text, files=files)
            self.assertEqual((age, result.err), (age, ""))
            self.assertEqual(result.calls()["optimizer_step", line_of(text, "sgd.step()")]["count"], 30, age)
            self.assertEqual(result.marks("end")[0]["units"][0], 30)

    def test_epochs_of_the_trainers_of_other_libraries_come_after_the_users_callbacks(self):
        hugging_face = {
            "lib/site-packages/transformers/__init__.py": "__version__ = '5'\nfrom transformers.trainer import Trainer\n",
            "lib/site-packages/transformers/trainer_callback.py": "class CallbackHandler:\n    def __init__(self, callbacks):\n        self.callbacks = callbacks\n"
            "    def on_epoch_end(self, args, state, control):\n        for callback in self.callbacks:\n            callback()\n        return control\n",
            "lib/site-packages/transformers/trainer.py": "from transformers.trainer_callback import CallbackHandler\nclass Trainer:\n    def __init__(self, callback):\n"
            "        self.handler = CallbackHandler([callback])\n    def train(self):\n        for epoch in range(6):\n            print('Epoch', epoch, 'of the bar')\n"
            "            assert self.handler.on_epoch_end(None, None, 7) == 7\n        return 'trained'\n",
        }
        loop = ("class %s:\n    def __init__(self, callback):\n        self.callback = callback\n    def on_advance_end(self):\n        self.callback()\n")
        trainer = ("from %s.loops import fit_loop\nclass Trainer:\n    def __init__(self, callback):\n        self.loop = getattr(fit_loop, '_FitLoop', None) or fit_loop.FitLoop\n"
                   "        self.loop = self.loop(callback)\n    def fit(self):\n        for epoch in range(6):\n            self.loop.on_advance_end()\n        return 'trained'\n")
        for name, method, files in (
                ("transformers", "train", hugging_face),
                ("lightning.pytorch", "fit", {"lib/site-packages/lightning/__init__.py": "", "lib/site-packages/lightning/pytorch/__init__.py": "__version__ = '2'\nfrom lightning.pytorch.trainer.trainer import Trainer\n",
                                              "lib/site-packages/lightning/pytorch/loops/__init__.py": "", "lib/site-packages/lightning/pytorch/loops/fit_loop.py": loop % "_FitLoop",
                                              "lib/site-packages/lightning/pytorch/trainer/__init__.py": "", "lib/site-packages/lightning/pytorch/trainer/trainer.py": trainer % "lightning.pytorch"}),
                ("pytorch_lightning", "fit", {"lib/site-packages/pytorch_lightning/__init__.py": "__version__ = '1'\nfrom pytorch_lightning.trainer.trainer import Trainer\n",
                                              "lib/site-packages/pytorch_lightning/loops/__init__.py": "", "lib/site-packages/pytorch_lightning/loops/fit_loop.py": loop % "FitLoop",
                                              "lib/site-packages/pytorch_lightning/trainer/__init__.py": "", "lib/site-packages/pytorch_lightning/trainer/trainer.py": trainer % "pytorch_lightning"})):
            with self.subTest(name):
                text = PATH + "import time, %s as library\ndef seen():\n    time.sleep(0.06)\n    print('callback')\ntrainer = library.Trainer(seen)\nassert trainer.%s() == 'trained'\n" % (name, method)
                result = run(text, files=files)
                self.assertEqual(result.err, "")
                epochs = result.marks("epoch", 4)
                self.assertEqual([mark["index"] for mark in epochs], [1, 2, 3, 4, 5, 6])
                self.assertEqual({mark["name"] for mark in epochs}, {"fit"})
                self.assertEqual(len(result.marks("fit", 4)), 1)
                self.assertEqual(result.marks("end")[0]["units"][1], 6)

    def test_an_epoch_of_accelerates_loader_is_one_of_torchs_at_the_users_line(self):
        files = {
            "lib/site-packages/torch/__init__.py": "__version__ = '2'\nclass cuda:\n    is_initialized = staticmethod(lambda: False)\nclass Tensor: pass\n",
            "lib/site-packages/torch/utils/__init__.py": "", "lib/site-packages/torch/utils/data/__init__.py": "",
            "lib/site-packages/torch/utils/data/dataloader.py": "class DataLoader:\n    def __iter__(self):\n        return iter(range(3))\n",
            "lib/site-packages/accelerate/__init__.py": "__version__ = '1'\n",
            "lib/site-packages/accelerate/data_loader.py": "from torch.utils.data.dataloader import DataLoader\nclass DataLoaderShard:\n    def __init__(self):\n        self.base_dataloader = DataLoader()\n"
            "    def __iter__(self):\n        yield from self.base_dataloader.__iter__()\n",
        }
        text = PATH + "import time, torch, accelerate\nfrom accelerate.data_loader import DataLoaderShard\nloader = DataLoaderShard()\nfor epoch in range(5):\n    for batch in loader:\n        pass\n    time.sleep(0.06)\n"
        result = run(text, files=files)
        self.assertEqual(result.err, "")
        loaders = result.marks("loader", 4)
        self.assertEqual(len(loaders), 5)
        self.assertEqual({mark["name"] for mark in loaders}, {"train.py:%d" % line_of(text, "for batch in loader")})
        self.assertIn("accelerate", [note["name"] for note in result.notes("framework")])

    def test_log_lines_and_progress_bars(self):
        files = {"lib/site-packages/tqdm/__init__.py": "from tqdm.std import tqdm\n", "lib/site-packages/tqdm/std.py": """
            class tqdm:
                def __init__(self, items, desc=None):
                    self.items, self.desc = items, desc
                def __iter__(self):
                    for item in self.items:
                        yield item
        """}
        text = PATH + ("import logging, time\nfrom tqdm import tqdm\nlogging.basicConfig(level=logging.INFO)\nfor i in tqdm(range(6), desc='train 1'):\n"
                       "    time.sleep(0.06)\n    logging.info('epoch %d: loss %.3f', i, 1.0)\n")
        result = run(text, files=files)
        self.assertEqual(len(result.marks("epoch", 4)), 6)
        self.assertEqual(len(result.marks("loop", 4)), 6)
        self.assertEqual(result.err.count("INFO"), 6)
        self.assertEqual(result.err.count("\n"), 6)


if __name__ == "__main__":
    unittest.main()
