"""syncopate.numpy between two ranks, where torch is never imported."""

import sys

import numpy as np

import syncopate.numpy as sy


def operations(rank):
    own = np.arange(700_000, dtype=np.float32) * (rank + 1)
    assert (sy.allreduce(own) == np.arange(700_000, dtype=np.float32) * 1.5).all()
    assert (own == np.arange(700_000, dtype=np.float32) * (rank + 1)).all()
    assert sy.allreduce(np.ones((3, 4), np.float32).T, "sum").tolist() == [[2.0] * 3] * 4
    assert sy.allreduce(np.float32(rank + 1), "sum") == 3
    for values in (np.array([rank, 7]), np.full((4, 4), rank, np.uint8)[:, 1:3], np.array([rank == 1])):
        assert (sy.broadcast(values, root=1).reshape(-1)[0]) == 1
    whole = np.zeros((4, 4), np.uint8) + rank
    sy.broadcast(whole[:, 1:3], root=1)
    assert whole.sum() == (8 if rank == 0 else 16)


def train(mode, rank, size, optimizer="momentum", steps=150, **options):
    """Fits a line to points of which each rank has a share. Returns the weights."""
    draw = np.random.default_rng(1)
    x = draw.normal(size=(64, 3)).astype(np.float32)
    y = (x @ np.array([[1.0], [-2.0], [0.5]], np.float32)) + 3
    x, y = x[rank::size], y[rank::size]
    own = {"w": np.full((3, 1), rank, np.float32), "b": np.zeros((), np.float32)}  # rank 0's count
    strategy = sy.Strategy(own, optimizer=optimizer, mode=mode, **options)
    weights = strategy.weights
    for _ in range(steps):
        error = x @ weights["w"] + weights["b"] - y
        gradients = {"w": 2 * x.T @ error / len(x), "b": np.float32(2 * error.mean())}
        assert strategy.step(gradients, 0.05) is weights
    strategy.close()
    return strategy.weights


def main():
    sy.init(wire=sys.argv[1])
    rank = sy.rank()
    assert (sy.size(), sy.local_rank()) == (2, rank)
    operations(rank)
    ours = train("allreduce", rank, 2)
    assert abs(ours["w"][:, 0] - [1, -2, 0.5]).max() < 0.05 and abs(ours["b"] - 3) < 0.05, ours
    for servers in (1, 2):
        servers_ones = train("ps", rank, 2, servers=servers)
        assert all((ours[name] == servers_ones[name]).all() for name in ours)
    train("ps", rank, 2, "adam", consistency="async", compress="fp16")
    assert sy.allreduce(ours["w"], "sum").tolist() == (2 * ours["w"]).tolist()
    sy.shutdown()
    sy.init()  # again, in the same process
    assert sy.allreduce(np.ones(1, np.float32), "sum") == 2
    sy.shutdown()
    assert "torch" not in sys.modules
    print("all is as it should be")


if __name__ == "__main__":
    main()
