"""Keras opens what the runner wrote: every case's model (ours.json), and layers, losses and metrics of every class with drawn options (drawn.json).
Each says of itself what it said before."""
import json, os, pathlib, sys
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras

# What Keras refuses of options that are legal one by one; and the activation and the loss that it has no name for.
REFUSED = ("`strides > 1` not supported", "must be evenly divisible by the number of groups", "number of groups")
OURS_ALONE = ('"gelu_tanh"', '"Crossentropy"')
# Keras writes the masks that it makes by itself as operators among the layers and as arguments; when it opens ours it makes them again.
MASKS = ("mask", "query_mask", "value_mask", "key_mask")


def is_operation(j):
    return isinstance(j, dict) and str(j.get("module", "")).startswith("keras.src.ops")


def plain(j, inside=""):
    """As both would write it: without what Keras notes of its building and compiling, masks, and arguments that are null."""
    if isinstance(j, list):
        return [plain(e) for e in j if not is_operation(e)]
    if not isinstance(j, dict):
        return j
    empty = lambda v: v is None or isinstance(v, list) and not any(v)
    return {k: plain(v, k) for k, v in j.items() if k not in ("build_config", "compile_config") and not (inside == "kwargs" and (k in MASKS or empty(v)))}


def difference(a, b, at="model"):
    if isinstance(a, dict) and isinstance(b, dict):
        for k in sorted({*a, *b}):
            if (k in a) != (k in b):
                return f"{at}.{k} is only in {'ours' if k in a else 'that of Keras'}"
            if found := difference(a[k], b[k], f"{at}.{k}"):
                return found
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return next((found for i, (x, y) in enumerate(zip(a, b)) if (found := difference(x, y, f"{at}[{i}]"))), None)
    elif a != b:
        return f"{at} is {a} in ours and {b} in that of Keras"


def as_json(config):
    return json.loads(json.dumps(keras.saving.serialize_keras_object(config)))


def open_model(text):
    keras.utils.clear_session()
    return as_json(keras.models.model_from_json(text).get_config())


def models(folder):
    cases = sorted(p for p in folder.iterdir() if (p / "ours.json").exists())
    for case in cases:
        ours, theirs = (case / "ours.json").read_text(), (case / "model.json").read_text()
        if wrong := difference(plain(json.loads(ours)), plain(json.loads(theirs))):
            sys.exit(f"{case.name}: {wrong}")
        opened = [plain(open_model(text)) for text in (ours, theirs)]
        # Without the operators of masks Keras may order layers otherwise than with them (ours are in its order with them, compared above).
        if "keras.src.ops" in theirs:
            for model in opened:
                model["layers"].sort(key=lambda layer: layer["config"]["name"])
        if wrong := difference(*opened):
            sys.exit(f"{case.name}, opened by Keras: {wrong}")
    return len(cases)


def drawn(folder):
    opened, of = 0, {}
    for entry in json.loads((folder / "drawn.json").read_text()):
        if any(name in json.dumps(entry) for name in OURS_ALONE):
            continue
        kind = entry["class_name"]
        of.setdefault(kind, 0)
        try:
            made = keras.saving.deserialize_keras_object(entry)
        except (TypeError, ValueError) as e:
            if any(text in str(e) for text in REFUSED):
                continue
            e.add_note(f"reading {entry}")
            raise
        if wrong := difference(entry["config"], as_json(made.get_config()), kind):
            sys.exit(wrong)
        opened, of[kind] = opened + 1, of[kind] + 1
    if rare := [kind for kind, count in of.items() if count < 3]:
        sys.exit(f"Keras opened hardly any of {rare}")
    return opened


folder = pathlib.Path(sys.argv[1])
count = models(folder) if folder.exists() else 0
if not count:
    print("nothing to read: the runner has not run")
    sys.exit(77)
print(f"Keras {keras.__version__} has opened {count} models and {drawn(folder)} layers, losses and metrics of ours")
