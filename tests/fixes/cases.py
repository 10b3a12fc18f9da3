"""The programs whose fixes are tried (run.py), and why a cause has none. Every cause that can be triggered on this machine has one."""


class Case:
    """program, by_hand: under tests/. how: `edit`, `environment` or `words`. says: an expression that the fix's text must match; with `words` it is what the
    person did who changed the program to `by_hand`. lowers: of what does not grow, the part of its bytes that may be left with the fix."""

    def __init__(self, name, causes, how, says, program=None, by_hand=None, packages=(), quick=False, verdict="leak", prints_the_same=True, lowers=None):
        self.name, self.causes, self.how, self.says = name, causes.split(), how, says
        self.program = program or f"fixes/programs/{name}.py"
        self.by_hand = by_hand or f"fixes/by_hand/{name}.py"
        self.packages, self.quick, self.verdict, self.prints_the_same, self.lowers = packages, quick, verdict, prints_the_same, lowers


def known(name, folder="programs"):
    return f"cases/{folder}/{name}.py"


TF, KERAS, TORCH, JAX = ("tensorflow", "numpy"), ("tensorflow", "keras", "numpy"), ("torch",), ("jax", "numpy")

CASES = [
    # Containers, by what they are and what they keep.
    Case("kept_buffers", "C14", "edit", r"`del self\.seen\[:-6\]`", quick=True),
    Case("kept_in_one_line", "C14", "edit", r"`del self\.inputs\[:-5\]`", quick=True),
    Case("kept_by_key", "C14", "edit", r"del results\[next\(iter\(results\)\)\]", quick=True),
    Case("cached_features", "C14", "edit", r"`@lru_cache\(maxsize=6\)`", quick=True),
    Case("growing_text", "C14", "edit", r"`log = log\[-\d+:\]`", quick=True),
    Case("kept_errors", "C40 C14", "edit", r"error\.with_traceback\(None\)", quick=True),
    Case("recent_windows", "C14", "edit", r"windows\[name\]\.popleft\(\)"),
    Case("unread_queue", "C14", "words", r"Let more be taken out"),
    Case("seen_samples", "C14", "words", r"empty it after each round \(`clear`\)"),
    Case("torch_losses", "C36", "edit", r"\(epoch, loss\.item\(\)\)", packages=TORCH, quick=True),
    Case("torch_outputs", "C14", "edit", r"`del self\.outputs\[:-3\]`", packages=TORCH, quick=True),
    Case("torch_running_total", "C36", "edit", r"`total = total\.detach\(\)`", packages=TORCH),
    Case("tf_outputs", "C14", "edit", r"`del outputs\[:-4\]`", packages=TF),
    Case("tf_losses", "C14", "edit", r"loss\.numpy\(\)\.item\(\)", packages=TF),
    Case("jax_states", "C14", "edit", r"`del states\[:-5\]`", packages=JAX),
    Case("native_handles", "N1 P1", "words", r"free, close or destroy"),
    # The catalogue's own programs. Where results are not compared the weights have no seed, or a person's fix trains otherwise.
    Case("policy_numpy", "C14", "edit", r"`del self\.trajectories\[:-\d+\]`", known("policy_numpy"), packages=("numpy",)),
    Case("augment_sequence", "C14", "edit", r"", known("augment_sequence"), packages=KERAS, prints_the_same=False),
    Case("topic_callback", "C14", "edit", r"`del self\.saved\[:-1\]`", known("topic_callback"), packages=KERAS, prints_the_same=False),
    Case("epoch_plots", "C16", "edit", r"`plt\.close\(fig\)`", known("epoch_plots"), packages=(*KERAS, "matplotlib"), prints_the_same=False),
    Case("torch_validate", "C36", "edit", r"val_loss\.item\(\)", known("torch_validate"), packages=TORCH, prints_the_same=False),
    Case("feature_probe", "C38", "edit", r"`del self\.maps\[:-\d+\]`", known("feature_probe"), packages=TORCH),
    Case("warmup_loop", "C1", "edit", r"`tf\.constant\(step\)`", known("warmup_loop"), packages=TF, prints_the_same=False),
    Case("c02_new_callable", "C2", "edit", r"before the loop", known("c02_new_callable", "cause_scripts"), packages=KERAS, prints_the_same=False),
    Case("c03_lengths", "C3", "edit", r"reduce_retracing=True", known("c03_lengths", "cause_scripts"), packages=KERAS, prints_the_same=False),
    Case("c06_xla_candidates", "C6", "edit", r"jit_compile=False", known("c06_xla_candidates", "cause_scripts"), packages=TF, prints_the_same=False),
    Case("c40_kept_exceptions", "C40", "edit", r"error\.with_traceback\(None\)", known("c40_kept_exceptions", "cause_scripts"), packages=TORCH),
    Case("shard_stats", "C25", "environment", r"MALLOC_MMAP_THRESHOLD_=(16384|32768)", known("shard_stats"), packages=("numpy",), verdict="retention", lowers=0.2),
    Case("kfold_models", "C5", "words", r"use one model for all rounds", known("kfold_models"), known("kfold_models_v3"), packages=KERAS, prints_the_same=False),
    Case("staged_finetune", "C8", "words", r"Compile once, before the loop", known("staged_finetune"), known("staged_finetune_v2"), packages=KERAS, prints_the_same=False),
    Case("jax_lengths", "C42", "words", r"Pad or bucket", known("jax_lengths"), known("jax_lengths_v2"), packages=JAX, prints_the_same=False),
    Case("c07_load_in_loop", "C7", "words", r"Load once", known("c07_load_in_loop", "cause_scripts"), packages=KERAS, prints_the_same=False),
    Case("c10_gc_off", "C10", "words", r"gc\.collect\(\) at the end of each round", known("c10_gc_off", "cause_scripts"), packages=("numpy",)),
    Case("c11_baked_table", "C11", "words", r"Pass the array as an argument", known("c11_baked_table", "cause_scripts"), packages=TF),
    Case("c23_generator_each_epoch", "C23", "words", r"Make the data set once", known("c23_generator_each_epoch", "cause_scripts"), packages=KERAS, prints_the_same=False),
    Case("c24_worker_lists", "C24", "words", r"one NumPy array", known("c24_worker_lists", "cause_scripts"), packages=TORCH, prints_the_same=False),
    Case("c37_grad_with_history", "C37", "words", r"grad of every parameter to None", known("c37_grad_with_history", "cause_scripts"), packages=TORCH),
]

# Why a cause has no case: its fix is words that nobody could try here.
NO_LEAK = "no leak with the versions at hand, so there is no growth to cure (../cases/cause_scripts/README.md)"
NO_LEAK_ANY_MORE = "no leak any more with the versions at hand"
NO_GPU = "needs a GPU; ../gpu has programs of which the verdict is tried on one"
WITHOUT = dict({cause: NO_LEAK for cause in "C4 C12 C13 C15 C17 C18 C19 C20 C21 C22 C26 C31 C35 C43 C44 F1 F2 K1 K2 K3".split()},
               C9=NO_LEAK_ANY_MORE, C39=NO_LEAK_ANY_MORE, C41="needs torch 2", **{cause: NO_GPU for cause in "C27 C28 C29 G1".split()})
