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
