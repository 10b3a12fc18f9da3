"""Keras loads every weight file that the runner wrote (ours.weights.h5) and finds the values it had made up."""
import os, pathlib, sys
os.environ["KERAS_BACKEND"] = "jax"  # starts faster than TensorFlow; the files are the same
os.environ["JAX_PLATFORMS"] = "cpu"
import numpy as np
import keras

folder = pathlib.Path(sys.argv[1])
count = 0
for case in sorted(p for p in folder.iterdir() if (p / "ours.weights.h5").exists()):
    model = keras.models.model_from_json((case / "model.json").read_text())
    model.load_weights(case / "ours.weights.h5")
    for i, w in enumerate(model.get_weights()):
        if not np.array_equal(w, np.load(case / f"w{i}.npy")):
            sys.exit(f"{case.name}: weight {i} ({model.weights[i].path}) is not what was written")
    count += 1
if not count:
    print("nothing to read: the runner has not run")
    sys.exit(77)
print(f"Keras {keras.__version__} has read {count} files of ours")
