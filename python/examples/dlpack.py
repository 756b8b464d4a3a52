"""Logistic regression in JAX, trained by Syncopate: arrays go to and fro by DLPack, without copies of gradients. Where JAX is not
installed, NumPy stands in for it. TensorFlow does the same with tf.experimental.dlpack.

    export MASTER_ADDR=127.0.0.1 MASTER_PORT=29400 WORLD_SIZE=2
    RANK=1 python dlpack.py & RANK=0 python dlpack.py
"""

import sys

import numpy as np

import syncopate.numpy as sy

try:
    import jax
    import jax.numpy as xp
except ImportError:
    jax, xp = None, np


def loss_of(weights, x, y):
    scores = x @ weights["w"] + weights["b"]
    return xp.mean(xp.logaddexp(0.0, scores) - y * scores)


def by_hand(weights, x, y):
    error = 1 / (1 + np.exp(-(x @ weights["w"] + weights["b"]))) - y
    return {"w": (x.T @ error / len(x)).astype(np.float32), "b": error.mean(keepdims=True).astype(np.float32)}


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else "allreduce"  # or ps
    gradients_of = jax.jit(jax.grad(loss_of)) if jax else by_hand
    draw = np.random.default_rng(1)
    x = draw.normal(size=(512, 4)).astype(np.float32)
    y = (x @ np.array([2, -1, 0.5, 1], np.float32) > 0.3).astype(np.float32)

    sy.init()
    own = slice(sy.rank(), None, sy.size())  # each rank its share of the data
    strategy = sy.Strategy({"w": np.zeros(4, np.float32), "b": np.zeros(1, np.float32)}, optimizer="adam", mode=mode)
    for _ in range(200):
        # A copy: the next step() writes to the arrays, and JAX takes its own for constants.
        weights = {name: xp.array(array) for name, array in strategy.weights.items()}
        strategy.step(gradients_of(weights, x[own], y[own]), learning_rate=0.05)  # takes whatever has __dlpack__
    scores = x @ strategy.weights["w"] + strategy.weights["b"]
    print(f"{'JAX' if jax else 'NumPy'}, {mode}: accuracy {((scores > 0) == y).mean():.3f}")
    sy.shutdown()


if __name__ == "__main__":
    main()
