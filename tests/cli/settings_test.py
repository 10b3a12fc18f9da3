"""What train is told by a file and by options, and what happens when it cannot go on."""
import json
import os
import resource
import signal
import subprocess
import unittest

from program import PROGRAM, SANITIZED, InFolder, keras_json, layer, millpond, millpond_json, write_npy

BASE = {"name": "adam", "learning_rate": 0.001, "weight_decay": None, "clipnorm": None, "global_clipnorm": None, "clipvalue": None, "use_ema": False, "ema_momentum": 0.99,
        "ema_overwrite_frequency": None, "loss_scale_factor": None, "gradient_accumulation_steps": None}
ADAM = {**BASE, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07, "amsgrad": False}
SGD = {**BASE, "name": "SGD", "momentum": 0.0, "nesterov": False}


class OptimizerOfAFile(InFolder):
    def compiled(self, kind, config):
        """A file as Keras writes it after compile."""
        whole = json.loads(keras_json(layer("InputLayer", batch_shape=[None, 6], dtype="float32", name="in"), layer("Dense", units=5, activation="relu", name="a"),
                                      layer("Dense", units=1, name="b")))
        whole["compile_config"] = {"optimizer": {"module": "keras.optimizers", "class_name": kind, "config": config, "registered_name": None}, "loss": "mse", "metrics": None}
        file = self.path("m.json")
        with open(file, "w") as out:
            json.dump(whole, out)
        return file

    def losses(self, kind, config, *more):
        return millpond_json("train", self.compiled(kind, config), "--synthetic", "--epochs", 3, *more)["loss_per_epoch"]

    def test_its_learning_rate_is_used(self):
        slow, fast = self.losses("Adam", {**ADAM, "learning_rate": 1e-12}), self.losses("Adam", {**ADAM, "learning_rate": 0.05})
        self.assertAlmostEqual(slow[0], slow[2], places=4)
        self.assertLess(fast[2], 0.9 * fast[0])
        self.assertEqual(self.losses("Adam", {**ADAM, "learning_rate": 1e-12}, "--learning-rate", 0.05), fast)

    def test_momentum_has_its_slots_in_the_plan(self):
        weights = (6 * 5 + 5 + 5 + 1) * 4
        plain = millpond_json("plan", self.compiled("SGD", SGD))["slots_bytes"]
        with_momentum = millpond_json("plan", self.compiled("SGD", {**SGD, "momentum": 0.9}))["slots_bytes"]
        self.assertEqual(with_momentum - plain, weights)

    def test_every_optimizer_has_its_own_slots_in_the_plan(self):
        weights = (6 * 5 + 5 + 5 + 1) * 4
        plain = millpond_json("plan", self.compiled("SGD", SGD))["slots_bytes"]
        rms = {**BASE, "name": "rmsprop", "rho": 0.9, "momentum": 0.0, "epsilon": 1e-07, "centered": False}
        for kind, config, slots, numbers in (("RMSprop", rms, 1, 0), ("RMSprop", {**rms, "momentum": 0.9}, 2, 0), ("RMSprop", {**rms, "momentum": 0.9, "centered": True}, 3, 0),
                                             ("Lion", {**BASE, "beta_1": 0.9, "beta_2": 0.99}, 1, 0), ("Adagrad", {**BASE, "initial_accumulator_value": 0.1, "epsilon": 1e-07}, 1, 0),
                                             ("Nadam", {**BASE, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07}, 2, 1)):
            self.assertEqual(millpond_json("plan", self.compiled(kind, config))["slots_bytes"] - plain, slots * weights + numbers * 4, kind)

    def test_clipping_is_used(self):
        free = self.losses("SGD", {**SGD, "learning_rate": 0.05})
        for way in ("clipnorm", "clipvalue", "global_clipnorm"):
            for with_room, without in zip(self.losses("SGD", {**SGD, "learning_rate": 0.05, way: 1e6}), free):
                self.assertAlmostEqual(with_room, without, places=6)
            held = self.losses("SGD", {**SGD, "learning_rate": 0.05, way: 1e-9})
            self.assertAlmostEqual(held[0], held[2], places=4)

    def test_a_setting_that_makes_no_sense_is_refused_by_its_name(self):
        for kind, config, words in (("Adam", {**ADAM, "clipnorm": 1.0, "clipvalue": 2.0}, "clipnorm is 1, clipvalue 2 and global_clipnorm 0, but gradients are clipped in one way only"),
                                    ("RMSprop", {**BASE, "rho": 1.5}, "rho is 1.5, but must lie between 0 and 1")):
            self.assertIn(words, millpond("plan", self.compiled(kind, config), code=2)[1])

    def test_a_setting_that_is_not_here_is_refused_by_its_name(self):
        for kind, config, words in (("Adam", {**ADAM, "amsgrad": True}, "amsgrad is true"), ("SGD", {**SGD, "use_ema": True}, "use_ema is true"),
                                    ("Adam", {**ADAM, "learning_rate": {"class_name": "ExponentialDecay", "config": {}}}, "learning_rate is a ExponentialDecay"),
                                    ("Adam", {**ADAM, "something_new": 3}, "something_new is 3"), ("Ftrl", BASE, "Ftrl is not here")):
            file = self.compiled(kind, config)
            for command in (("train", file, "--synthetic"), ("plan", file)):
                _, err = millpond(*command, code=1)
                self.assertIn(words, err)
            self.assertGreater(millpond_json("plan", file, "--optimizer", "adam")["slots_bytes"], 0)

    def test_its_metrics_are_measured(self):
        def file(metrics, **more):
            name = self.compiled("Adam", ADAM)
            with open(name) as text:
                whole = json.load(text)
            whole["compile_config"].update({"loss": "binary_crossentropy", "metrics": metrics}, **more)
            with open(name, "w") as out:
                json.dump(whole, out)
            return name
        precision = {"module": "keras.metrics", "class_name": "Precision", "config": {"name": "hits", "dtype": "float32", "thresholds": 0.25, "top_k": None, "class_id": None}}
        for metrics, names in ((["auc", precision], ["auc", "hits", "loss"]), (None, ["loss"]), ([["mae"]], ["loss", "mae"])):
            self.assertEqual(sorted(millpond_json("train", file(metrics), "--synthetic", "--epochs", 1)["last_epoch"]), names)
        for metrics, words, code in ((["mape"], 'metric "mape" is not known', 2), ([{"class_name": "F1Score", "config": {}}], "metric F1Score is not here yet", 1),
                                     ([dict(precision, config={"thresholds": [0.1, 0.2]})], "Precision: thresholds is [0.1,0.2]", 1)):
            self.assertIn(words, millpond("plan", file(metrics), code=code)[1])
        self.assertIn("weighted_metrics are not here yet", millpond("plan", file([], weighted_metrics=["auc"]), code=1)[1])

    def test_what_only_predicts_does_not_mind(self):
        file, weights = self.compiled("Adam", {**ADAM, "use_ema": True}), self.path("w.weights.h5")
        millpond("train", file, "--synthetic", "--optimizer", "sgd", "--save", weights)
        write_npy(self.path("x.npy"), [0.5] * 12, (2, 6))
        write_npy(self.path("y.npy"), [0.5] * 2, (2, 1))
        millpond("predict", file, "--weights", weights, "--data", self.path("x.npy"))
        millpond("evaluate", file, "--weights", weights, "--data", self.path("x.npy"), self.path("y.npy"))


class Options(InFolder):
    def test_numbers_that_are_too_small_are_refused_in_words(self):
        for option, value, words in (("--epochs", 0, "0 is not a whole number of at least 1"), ("--batch", -3, "-3 is not a whole number of at least 1"),
                                     ("--threads", -1, "-1 is not a whole number of at least 0"), ("--epochs", "many", "many is not a whole number")):
            _, err = millpond("train", "tiny", "--synthetic", option, value, code=2)
            self.assertIn(words, err)
            self.assertNotIn("e+308", err)

    def test_a_mistyped_command_is_guessed(self):
        self.assertIn("did you mean train?", millpond("trian", code=2)[1])

    def test_training_goes_on_from_saved_weights(self):
        first, second = self.path("a.weights.h5"), self.path("b.weights.h5")
        trained = millpond_json("train", "tiny", "--synthetic", "--epochs", 4, "--save", first)["loss_per_epoch"]
        on = millpond_json("train", "tiny", "--synthetic", "--epochs", 1, "--weights", first, "--save", second)["loss_per_epoch"]
        self.assertLess(on[0], 0.5 * (trained[0] + trained[-1]))
        with open(first, "rb") as a, open(second, "rb") as b:
            self.assertNotEqual(a.read(), b.read())

    def test_validation_is_told_beside_the_loss(self):
        for name, width in (("x", 4), ("y", 1)):
            write_npy(self.path(name + ".npy"), [0.25] * (8 * width), (8, width))
        files = (self.path("x.npy"), self.path("y.npy"))
        last = millpond_json("train", "tiny", "--data", *files, "--validation", *files)["last_epoch"]
        self.assertIn("loss", last)
        self.assertIn("val_loss", last)
        self.assertIn("val_loss", millpond("train", "tiny", "--data", *files, "--validation", *files)[0])


class OpenDimensionsAndSeveralOutputs(InFolder):
    def words(self):
        """A model for sequences of any length."""
        file = self.path("words.json")
        with open(file, "w") as out:
            out.write(keras_json(layer("InputLayer", batch_shape=[None, None], dtype="int32", name="in"), layer("Embedding", input_dim=9, output_dim=4, mask_zero=True, name="e"),
                                 layer("LSTM", units=3, name="l"), layer("Dense", units=1, name="d")))
        return file

    def two(self, **compiled):
        """Two inputs and two outputs, as Keras writes them."""
        tensor = lambda name, width: {"class_name": "__keras_tensor__", "config": {"shape": [None, width], "dtype": "float32", "keras_history": [name, 0, 0]}}
        call = lambda *args: [{"args": list(args), "kwargs": {}}]
        layers = [
            {"class_name": "InputLayer", "name": "a", "inbound_nodes": [], "config": {"batch_shape": [None, 3], "dtype": "float32", "name": "a"}},
            {"class_name": "InputLayer", "name": "b", "inbound_nodes": [], "config": {"batch_shape": [None, 2], "dtype": "float32", "name": "b"}},
            {"class_name": "Concatenate", "name": "both", "inbound_nodes": call([tensor("a", 3), tensor("b", 2)]), "config": {"name": "both", "axis": -1}},
            {"class_name": "Dense", "name": "kind", "inbound_nodes": call(tensor("both", 5)), "config": {"name": "kind", "units": 3, "activation": "softmax"}},
            {"class_name": "Dense", "name": "size", "inbound_nodes": call(tensor("both", 5)), "config": {"name": "size", "units": 1}}]
        whole = {"class_name": "Functional", "config": {"name": "two", "layers": layers, "input_layers": [["a", 0, 0], ["b", 0, 0]],
                                                        "output_layers": [["kind", 0, 0], ["size", 0, 0]]}}
        if compiled:
            whole["compile_config"] = compiled
        file = self.path("two.json")
        with open(file, "w") as out:
            json.dump(whole, out)
        return file

    def test_a_plan_is_told_the_shapes_that_a_model_leaves_open(self):
        file = self.words()
        _, err = millpond("plan", file, "--loss", "mse", code=2)
        self.assertIn('nobody says how large samples are: the input "in" takes [None]', err)
        short, long = (millpond_json("plan", file, "--loss", "mse", "--shape", n, "--batch", 8) for n in (10, 40))
        self.assertLess(short["arena_bytes"], long["arena_bytes"])
        self.assertEqual(short["programs"][0]["samples"], "[10]")
        self.assertIsNone(millpond_json("plan", "tiny")["programs"][0]["samples"])
        self.assertIn("for samples of [10]", millpond("plan", file, "--loss", "mse", "--shape", 10)[0])
        self.assertIn('"1x" is not the shape of a sample', millpond("plan", file, "--shape", "1x", code=2)[1])

    def test_training_takes_them_from_its_data(self):
        file = self.words()
        trained = millpond_json("train", file, "--loss", "mse", "--synthetic", "--shape", 12, "--epochs", 2)
        self.assertEqual(len(trained["loss_per_epoch"]), 2)
        x, y, weights = (self.path(name) for name in ("x.npy", "y.npy", "w.weights.h5"))
        write_npy(x, [i % 9 for i in range(40)], (8, 5), "i")
        write_npy(y, [0.5] * 8, (8, 1))
        for budget in ([], ["--data-budget", "1MiB"]):
            millpond("train", file, "--loss", "mse", "--data", x, y, "--save", weights, *budget)
            self.assertEqual(millpond_json("predict", file, "--weights", weights, "--data", x, *budget)["shapes"], [[8, 1]])

    def test_each_output_has_the_loss_of_the_file_or_of_the_command(self):
        a, b, kind, size = (self.path(name) for name in ("a.npy", "b.npy", "kind.npy", "size.npy"))
        write_npy(a, [i / 24 for i in range(24)], (8, 3))
        write_npy(b, [i / 16 for i in range(16)], (8, 2))
        write_npy(kind, [i % 3 for i in range(8)], (8,), "i")
        write_npy(size, [0.5] * 8, (8, 1))
        names = ["kind_loss", "loss", "size_loss"]
        by_name = {"kind": "sparse_categorical_crossentropy", "size": {"class_name": "MeanSquaredError", "config": {}}}
        of_file = millpond_json("train", self.two(loss=by_name, loss_weights={"kind": 1.0, "size": 0.25}), "--data", a, b, kind, size)["last_epoch"]
        self.assertEqual(sorted(of_file), names)
        self.assertAlmostEqual(of_file["loss"], of_file["kind_loss"] + 0.25 * of_file["size_loss"], places=5)
        listed = millpond_json("train", self.two(loss=["sparse_categorical_crossentropy", "mse"]), "--data", a, b, kind, size)["last_epoch"]
        told = millpond_json("train", self.two(), "--loss", "size=mse,kind=sparse_categorical_crossentropy", "--data", a, b, kind, size)
        self.assertEqual(told["last_epoch"], listed)
        self.assertEqual(sorted(millpond_json("train", self.two(), "--loss", "size=mse,kind=sparse_categorical_crossentropy", "--synthetic")["last_epoch"]), names)
        self.assertIn('"mse" says of no output what its loss is', millpond("plan", self.two(), "--loss", "size=mse,mse", code=2)[1])
        self.assertIn('loss names the output "sort"', millpond("plan", self.two(), "--loss", "sort=mse,size=mse", code=2)[1])


class Saving(InFolder):
    def test_a_place_that_cannot_be_written_is_refused_before_training(self):
        out, err = millpond("train", "tiny", "--synthetic", "--save", self.path("no/such/folder/w.weights.h5"), code=1)
        self.assertIn("cannot be written: No such file or directory; does the folder", err)
        self.assertNotIn("Epoch", out)
        self.assertEqual(os.listdir(self.folder), [])

    def test_kill_saves_the_weights_and_ends_as_ever(self):
        weights = self.path("w.weights.h5")
        process = subprocess.Popen([PROGRAM, "train", "tiny", "--synthetic", "--epochs", "1000000", "--save", weights], stdout=subprocess.PIPE, text=True)
        while "Epoch 3/" not in process.stdout.readline():
            self.assertIsNone(process.poll(), "it ended by itself")
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=60), -signal.SIGTERM)
        self.assertTrue(os.path.exists(weights))

    @unittest.skipIf(SANITIZED, "sanitizers write files of their own")
    def test_a_file_that_may_not_grow_is_told_in_words(self):
        done = subprocess.run([PROGRAM, "train", "mlp_large", "--synthetic", "--epochs", "1", "--steps-per-epoch", "1", "--save", self.path("w.weights.h5")], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("w.weights.h5 could not be written: File too large", done.stderr)
        self.assertNotIn("errno", done.stderr)
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
