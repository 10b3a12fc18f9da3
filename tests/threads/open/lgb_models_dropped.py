"""Fitting models in a loop raises memory although each model is deleted.
lightgbm-org/LightGBM#4239
Fits LightGBM regressors in a loop and deletes each; only the score stays."""
import gc

import numpy as np
from lightgbm import LGBMRegressor

rng = np.random.default_rng(10)
X = rng.standard_normal((4000, 20))
y = X[:, 0] * 2 + np.sin(X[:, 1]) + rng.normal(0, 0.1, len(X))


def one(seed):
    model = LGBMRegressor(n_estimators=5, num_leaves=20, n_jobs=1, random_state=seed, verbosity=-1, subsample=0.7, subsample_freq=1)
    model.fit(X, y)
    error = float(np.abs(model.predict(X[:500]) - y[:500]).mean())
    del model
    gc.collect()
    return error


errors = []
for seed in range(30):
    errors.append(one(seed))
    print(f"fit {seed} error {errors[-1]:.4f}", flush=True)
