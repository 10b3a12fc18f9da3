"""The words of generated programs: names that people give to things, and lines that tell of progress."""

POOLS = {
    "list": "items records history snapshots saved seen entries trace outputs kept collected archive memory log_rows results buffer samples frames".split(),
    "dict": "by_step lookup table index store known results_by_key journal states bucket mapping per_step found".split(),
    "Class": "Recorder Tracker Monitor Journal Inspector HistoryBook Meter Archive Observer Collector Notebook Watcher Summary Bookkeeper Scribe".split(),
    "obj": "recorder tracker monitor journal inspector book meter archive_ observer collector notebook watcher summary scribe".split(),
    "method": "add update note record push observe track take put_down remember_it on_batch after_step".split(),
    "func": "remember register keep_track note_result log_step store_result observe_step account_for mark_done report_to".split(),
    "Node": "Node Link Entry Step Frame Record Cell Item Stage Checkpoint".split(),
    "Thing": "Sample Rollout Snapshot Trial Episode Window Segment Observation Batch Example".split(),
    "global": "_SEEN _REGISTRY _STATE HISTORY _RECENT _ALL _RESULTS KNOWN _INDEX _POOL".split(),
    "forward": "forward encode project embed features hidden score activate transform predict_rows".split(),
    "out": "out z hidden_ scores emb feats acts pred proj codes logits".split(),
    "x": "x xb rows batch chunk part inputs".split(),
    "w": "w weights coef theta params kernel".split(),
    "data": "data corpus train_x pool_x signals vectors measurements table_x".split(),
    "loss": "loss err cost objective mse".split(),
    "train": "train_epoch run_epoch one_pass do_epoch train_once sweep fit_epoch".split(),
    "Trainer": "Trainer Runner Session Experiment Loop Learner Fitter Engine".split(),
    "Model": "Regressor Encoder Projection Network Ranker Scorer Mapper SmallNet".split(),
    "maker": "make_data load_data synthesize build_dataset sample_data read_inputs".split(),
    "main": "main run train start".split(),
    "i": "i step b k j".split(),
}
WORDS = ("churn demand signal sensor price route clinic tide harvest retail traffic voice speech glyph leaf cargo orbit pixel sketch query review ticket invoice rain wind soil "
         "reef parcel transit ledger meter turbine bridge gait pulse protein sugar plankton border ranking session basket playlist recipe chess").split()
TASKS = "fit train model embed rank probe sgd encoder loop policy forecast cluster tagger score regress baseline sweep tune".split()
COMMENTS = ["# TODO: move to config", "# same split as last year", "# small enough for a laptop", "# seeds fixed so that runs compare", "# works, do not touch",
            "# see notes from the Tuesday meeting", "# good enough for now", "# lr found by hand", "# numbers from the paper"]
DOCS = ["Baseline for the {a} task.", "Trains the {a} model on synthetic data.", "Quick experiment: {a} {b}.", "{a} {b}, second attempt.", "Run with: python {file}",
        "Fits a small model for {a} data and prints the loss."]


class Names:
    """Natural identifiers, each used once in a program."""

    def __init__(self, rng):
        self.rng, self.used, self.given = rng, set(), {}

    def new(self, role):
        free = [n for n in POOLS[role] if n not in self.used] or [n + "_2" for n in POOLS[role] if n + "_2" not in self.used]
        name = self.rng.choice(free)
        self.used.add(name)
        return name

    def __getitem__(self, role):
        if role not in self.given:
            self.given[role] = self.new(role)
        return self.given[role]


def indent(lines, depth=1):
    return ["    " * depth + line if line.strip() else "" for line in lines]


def block(text):
    """Lines of a block of source, without the blank ones around it."""
    return text.strip("\n").split("\n")


# ------------------------------------------------------------------------------------------------------ progress lines

def progress(rng, word, var, total, loss, silent_ok):
    """How a period is reported: imports, lines before the loop, lines at its end, the pattern, and periods for each mark."""
    style = rng.choice(["slash", "bracket", "round", "logging", "json", "write", "table", "colon", "rare", "percent"] + (["none"] if silent_ok else []))
    imports, before, end, every = [], [], [], 1
    if style == "slash":
        end, mark = [f'print(f"{word} {{{var} + 1}}/{{{total}}} loss={{{loss}:.4f}}")'], rf"^{word} \d+/"
    elif style == "bracket":
        end, mark = [f'print("[%2d] {rng.choice(["loss", "error", "mse", "objective"])} %.3f" % ({var}, {loss}))'], r"^\[ *\d+\]"
    elif style == "round":
        imports = ["import time"]
        end, mark = [f'print(f"{word} {{{var}}} done in {{time.time() - began:.1f}}s, {{{loss}:.3f}}", flush=True)'], rf"^{word} \d+ done"
        before = ["began = time.time()"]
    elif style == "logging":
        imports = ["import logging"]
        form = rng.choice(["%(asctime)s %(levelname)s %(message)s", "%(message)s", "%(asctime)s %(message)s"])
        before = [f'logging.basicConfig(level=logging.INFO, format="{form}")']
        end, mark = [f'logging.info("{word} %d: loss %.4f", {var}, {loss})'], rf"{word} \d+: loss"
    elif style == "json":
        imports = ["import json"]
        end, mark = [f'print(json.dumps({{"{word}": {var}, "loss": round(float({loss}), 5)}}))'], rf'^\{{"{word}": \d+'
    elif style == "write":
        imports = ["import sys"]
        end, mark = [f'sys.stdout.write(f"{word[:2]} {{{var}:04d}} | {{{loss}:.5f}}\\n")'], rf"^{word[:2]} \d+ \|"
    elif style == "table":
        before = [f'print("{word}\\tloss")']
        end, mark = [f'print({var}, round(float({loss}), 4), sep="\\t")'], r"^\d+\t"
    elif style == "colon":
        end, mark = [f'print(f"{word} {{{var}}}: {{{loss}:.4f}}")'], rf"^{word} \d+:"
    elif style == "rare":
        every = 2
        end, mark = [f"if {var} % 2 == 1:", f'    print(f"{word} {{{var} + 1}}: loss {{{loss}:.4f}}")'], rf"^{word} \d+: loss"
    elif style == "percent":
        end, mark = [f'print("%s %d/%d  %.4f" % ("{word}", {var} + 1, {total}, {loss}))'], rf"^{word} \d+/"
    else:
        mark = None
    return {"imports": imports, "before": before, "end": end, "mark": mark, "every": every}
