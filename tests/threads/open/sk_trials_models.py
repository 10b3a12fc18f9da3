"""All models of a search are stored with their trials although only the best is wanted.
optuna/optuna#5183
A small random search over scikit-learn pipelines whose trials carry what they produced."""
import random

import numpy as np
from sklearn.kernel_ridge import KernelRidge

rng = np.random.default_rng(31)
X = rng.random((700, 6))
y = np.sin(X @ rng.random(6) * 4)


class Trial:
    def __init__(self, number):
        self.number = number
        self.parameters = {}
        self.user_attrs = {}
        self.value = None

    def suggest(self, name, low, high):
        self.parameters[name] = random.uniform(low, high)
        return self.parameters[name]


class Study:
    def __init__(self):
        self.trials = []

    def optimize(self, objective, count):
        for number in range(count):
            trial = Trial(number)
            trial.value = objective(trial)
            self.trials.append(trial)
            print(f"trial {number}: {trial.value:.5f}", flush=True)

    @property
    def best(self):
        return min(self.trials, key=lambda trial: trial.value)


def objective(trial):
    model = KernelRidge(alpha=10 ** trial.suggest("alpha", -4, 1), kernel="rbf", gamma=trial.suggest("gamma", 0.1, 3))
    model.fit(X, y)
    kernel = model._get_kernel(X, model.X_fit_)
    trial.user_attrs["model"] = model
    trial.user_attrs["kernel"] = kernel
    return float(np.square(model.predict(X) - y).mean())


if __name__ == "__main__":
    random.seed(0)
    study = Study()
    study.optimize(objective, 50)
    print(study.best.parameters)
