// Small changes to an input, drawn from a seed: what fuzz_tests tries beside the corpus where there is no libFuzzer.
#pragma once

#include <cstdint>
#include <vector>

#include "common/random.h"
#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {

// One to four changes of `input`: bits, bytes, numbers that parsers stumble over, parts cut out, repeated or taken from
// `other`.
std::vector<std::uint8_t> mutated(Bytes input, Bytes other, Random& random);

}  // namespace syncopate::fuzz
