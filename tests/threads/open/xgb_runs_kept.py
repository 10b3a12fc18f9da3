"""Memory steps up with each model that is fitted with another seed.
dmlc/xgboost#4843
Trains XGBoost with many seeds and notes booster, data and scores of each run to compare them."""
import numpy as np
import xgboost as xgb


def make(rows, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 50)).astype(np.float32)
    return x, (x[:, 0] + 0.5 * x[:, 1] > 0).astype(int)


def train_once(x, y, seed):
    chosen = np.random.default_rng(seed).random(len(x)) < 0.8
    matrix = xgb.DMatrix(x[chosen], label=y[chosen])
    scores = {}
    booster = xgb.train({"objective": "binary:logistic", "max_depth": 3, "nthread": 1, "seed": seed, "tree_method": "hist"}, matrix,
                        num_boost_round=5, evals=[(matrix, "train")], evals_result=scores, verbose_eval=False)
    return {"seed": seed, "booster": booster, "matrix": matrix, "score": scores["train"]["logloss"][-1]}


def main():
    x, y = make(8000, 0)
    runs = []
    for seed in range(40):
        runs.append(train_once(x, y, seed))
        best = min(runs, key=lambda run: run["score"])
        print(f"run {seed}: best {best['score']:.5f} of seed {best['seed']}", flush=True)


if __name__ == "__main__":
    main()
