"""Models that are kept for later hold their training data as well.
lightgbm-org/LightGBM#350
Fits one LightGBM model per target and keeps the models to predict with them afterwards."""
import lightgbm as lgb
import numpy as np

rng = np.random.default_rng(3)
X = rng.random((6000, 40))


class TargetModels:
    def __init__(self):
        self.models = {}

    def fit(self, name, target):
        data = lgb.Dataset(X + rng.normal(0, 0.01, X.shape), target, free_raw_data=False)
        booster = lgb.train({"num_threads": 1, "verbosity": -1, "num_leaves": 15}, data, num_boost_round=6, keep_training_booster=True)
        self.models[name] = booster

    def predict(self, row):
        return {name: float(model.predict(row)[0]) for name, model in self.models.items()}


def main():
    models = TargetModels()
    for number in range(40):
        models.fit(f"target{number}", X @ rng.random(40))
        print(f"target {number}", flush=True)
    print(sum(models.predict(X[:1]).values()))


if __name__ == "__main__":
    main()
