"""
When training diverges, or nothing is learned
=============================================

Nine ways to fail, all of them run for this page: what is seen, and what cured it. The data are turned digits; 64
filters in 16 turns learn from 1,300 of them, and a linear classifier says whether that was of use.
"""

# %%
# The signs to look at are those that every model has: ``history_`` (does the reconstruction error fall? is the sparsity
# near its target?), how many filters are never on or always on, and what the filters look like.

import warnings
from math import pi

import matplotlib.pyplot as plt
import numpy as np

from orbitpool import TIRBM, Diverged, LinearSVM, datasets
from orbitpool import transforms as T
from orbitpool.pictures import mosaic

digits = datasets.turned_digits()
USUAL = {
    "n_components": 64,
    "transforms": T.rotations(16, 16, pi / 8),
    "batch_size": 20,
    "n_iter": 8,
    "random_state": 0,
}
X, X_test = digits.X_train, digits.X_test


def learn(X=X, X_test=X_test, **settings):
    """A model, and its signs in one line."""
    model = TIRBM(**{**USUAL, **settings}).fit(X)
    first, *_, last = model.history_["reconstruction_error"]
    Z, Z_test = model.transform(X), model.transform(X_test)
    wrong = 1 - LinearSVM(C=0.1, standardize=True).fit(Z, digits.y_train).score(Z_test, digits.y_test)
    print(
        f"reconstruction error {first:.3g} -> {last:.3g}, sparsity {model.history_['sparsity'][-1]:.2f}, "
        f"{(Z.max(0) < 0.1).sum()} filters never on, {(Z.min(0) > 0.5).sum()} always on, test error {wrong:.1%}"
    )
    return model


def compare(**models):
    """Filters and learning curves, side by side."""
    _, axes = plt.subplots(1, len(models) + 1, figsize=(10, 3.2), layout="constrained")
    for ax, (name, model) in zip(axes, models.items(), strict=False):
        ax.imshow(mosaic(model.components_[:36].reshape(-1, 16, 16)))
        ax.set_title(name.replace("_", " "))
        ax.axis("off")
        error = np.array(model.history_["reconstruction_error"])
        axes[-1].plot(range(1, len(error) + 1), error / error[0], "o-", label=name.replace("_", " "))
    axes[-1].set(xlabel="epoch", title="error, as a part of the first", ylim=(0, None))
    axes[-1].legend(fontsize="small")
    plt.show()


good = learn()

# %%
# It diverges: inputs are not what the model takes
# ------------------------------------------------
# Bytes given to binary units, which take 0 to 1. A warning says so before the weights explode, and the error says where
# it happened. The model keeps its last good parameters.

with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    try:
        learn(X * 255)
    except Diverged as error:
        print("warned:", warned[0].message)
        print("error: ", error)

# %%
# **Cure:** divide by 255. That is ``good`` above.
#
# It diverges: real-valued inputs of a large variance
# ---------------------------------------------------
# Gaussian units assume noise of ``sigma``, 1 if not given. These inputs have a standard deviation of 2, and the rate
# that is right for binary inputs is too high for them.

centre, spread = X.mean(0), float((X - X.mean(0)).std())


def as_real(X, deviation):
    """Inputs less their mean, with a standard deviation."""
    return (X - centre) / spread * deviation


try:
    learn(as_real(X, 2), as_real(X_test, 2), visible="gaussian")
except Diverged as error:
    print("error:", error)

# %%
# **Cure:** unit variance and a tenth of the rate. A learned sigma draws inputs better still; whether its features tell
# classes apart better has to be tried, and here they do not.

unit = learn(as_real(X, 1), as_real(X_test, 1), visible="gaussian", learning_rate=0.005)
learned = learn(as_real(X, 1), as_real(X_test, 1), visible="gaussian", learning_rate=0.005, sigma="learned")

# %%
# Little is learned: real-valued inputs of a small variance
# ---------------------------------------------------------
# The opposite is quiet. Pixels less their mean have a standard deviation of a fifth here, far below sigma: to the model
# they are mostly noise, the error falls slowly, filters stay noisy, and there is no error message.

faint = learn(as_real(X, spread), as_real(X_test, spread), visible="gaussian", learning_rate=0.005)
compare(small_variance=faint, unit_variance=unit, learned_sigma=learned)

# %%
# **Cure:** the same: scale to unit variance.
#
# Nothing is learned: the rate is too low, or updates are too few
# ---------------------------------------------------------------
# The error does not move, and filters are still the noise that they started from. The classifier hides it: even noise
# tells many digits apart if it has the right poses. So look at the curve and at the filters, not at accuracy alone.

slow = learn(learning_rate=0.001)

# %%
# Eight epochs in batches of 200 are 56 updates, where batches of 20 make 520. Filters have moved, all to much the same.

few = learn(batch_size=200)
compare(too_low_a_rate=slow, too_few_updates=few, as_it_should_be=good)

# %%
# **Cure:** a higher rate (0.05 for binary inputs), smaller batches, or more epochs, until the curve is flat.
#
# Filters die: the rate is too high
# ---------------------------------
# Nothing diverges, but the error stops falling at twice that of the good model: nearly all filters were thrown so far
# by the first updates that they are never on again.

fast = learn(learning_rate=0.5)

# %%
# **Cure:** a lower rate; or a low one for the first epochs: ``learning_rate={0: 0.05, 5: 0.2}``.
#
# Filters die: too much is made of sparsity
# -----------------------------------------
# With a cost of 100 the only thing that matters is to be off.

sparse = learn(sparsity_cost=100.0)

# %%
# **Cure:** a lower cost; 3 is usual for binary inputs. Without any cost, though, some filters are never on and some
# always, since nothing makes them share the work.

free = learn(sparsity_cost=0.0)
compare(too_high_a_rate=fast, sparsity_cost_of_100=sparse, no_sparsity_cost=free)

# %%
# It is learned, and of no use: poses are not those of the data
# -------------------------------------------------------------
# All signs are good, and the classifier is bad: digits are turned, filters may only shift. No sign but the one that you
# learn for will show this; see :doc:`choosing`.

shifts = learn(transforms=T.translations(16, 12, stride=2))

# %%
# What else helps
# ---------------
# - ``verbose=True`` shows the error while it learns; Ctrl-C stops with a usable model.
# - ``early_stopping=True`` holds out rows and stops when their reconstruction gets no better.
# - ``checkpoint=path`` keeps a run. After divergence start with another path: the old one belongs to the old rate.
# - NaN and infinity in the data are refused before learning, with the reason.
