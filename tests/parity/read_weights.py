"""Keras loads every weight file that the runner wrote (ours.weights.h5): it has the groups, names and order of Keras's own, and the
model has the weights and computes the outputs it had before."""
import os, pathlib, sys
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import h5py, keras, numpy as np

# Here the layers run one by one, before they ran as one graph: the same sums in another order (parity_test.cc tells why this much).
ROUNDING = 1e-5


def tree(path):
    """Everything in the file by its path: attributes, and of a dataset type, shape and bytes. But not the names of the layers inside
    an attention, which count those of the whole process."""
    found = {}
    def look(name, o):
        counted = name.endswith(("/_softmax/vars", "/_dropout_layer/vars"))
        attributes = sorted((k, "" if counted else str(v)) for k, v in o.attrs.items())
        found[name] = (attributes, (o.dtype.str, o.shape, o[()].tobytes()) if isinstance(o, h5py.Dataset) else None)
    with h5py.File(path) as file:
        file.visititems(look)
    return found


folder = pathlib.Path(sys.argv[1])
count = 0
for case in sorted(p for p in folder.iterdir() if (p / "ours.weights.h5").exists()):
    ours, theirs = tree(case / "ours.weights.h5"), tree(case / "keras.weights.h5")
    if ours != theirs:
        wrong = [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
        sys.exit(f"{case.name}: ours.weights.h5 is not laid out as keras.weights.h5: {wrong[:5]}")
    model = keras.models.model_from_json((case / "model.json").read_text())
    model.load_weights(case / "ours.weights.h5")
    for i, w in enumerate(model.get_weights()):
        if not np.array_equal(w, np.load(case / f"w{i}.npy")):
            sys.exit(f"{case.name}: weight {i} ({model.weights[i].path}) is not what was written")
    xs = [np.load(case / f"x{i}.npy") for i in range(len(model.inputs))]
    out = model(xs[0] if len(xs) == 1 else xs, training=False)
    for i, o in enumerate(out if isinstance(out, list) else [out]):
        want = np.load(case / f"out{i}.npy")
        if want.dtype.kind == "V":  # bfloat16, which .npy does not know; parity_test has compared it
            continue
        if not np.abs(o.numpy() - want).max() <= ROUNDING * max(1e-3, np.abs(want).max()):
            sys.exit(f"{case.name}: output {i} is not what it was before")
    count += 1
if not count:
    print("nothing to read: the runner has not run")
    sys.exit(77)
print(f"Keras {keras.__version__} has read {count} files of ours")
