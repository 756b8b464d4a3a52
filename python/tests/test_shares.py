"""update="sharded": each rank makes the update of a part of the weights."""

import pytest

from ranks import run
from test_equality import GROUPED, RULES, assert_same_bits, train


def test_has_the_bits_of_an_update_that_each_rank_makes(tmp_path):
    rules = [rule for rule in RULES + GROUPED if rule not in ("lars", "lamb")]
    own = {rule: f"optimizer/mlp/{rule}/schedule=yes" for rule in rules}
    own.update({model: f"optimizer/{model}/adamw" for model in ("conv", "transformer")})
    ways = ("/update=sharded", "/update=sharded/bucket_mb=0.01", "/update=sharded/wire=sockets/push=step")
    results = train(tmp_path, 2, [job + way for job in own.values() for way in ("", *ways)], 20)
    for job in own.values():
        for way in ways:
            for rank in range(2):
                assert_same_bits(results[rank][job + way], results[rank][job])


@pytest.mark.parametrize("size", [2, 3])
def test_goes_on_from_what_all_ranks_have_saved(size):
    run("shares.py", size)
