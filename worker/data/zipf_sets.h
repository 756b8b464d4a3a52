// Generated data for recommenders, with any number of rows. Samples are pure functions of seed and index, and nothing
// is kept in memory.
//
// Rows are as popular as words in a text (Zipf's law, exponent 1: the k-th most popular is drawn with a probability
// near 1/k), and the popular ones are scattered over the table. A label is 1 with a probability that depends on the
// sample by a law that a model can learn. So the best loss on a test set is known: the mean entropy of its labels.
//
//   ratings  a user and an item; log odds = bias of the item + product of both's hidden factors
//   clicks   the form of Criteo's data (clicks_reader.h); log odds = the sum of the effects of 26 rows and 13 values
//
// Hidden factors, biases and effects are functions of the seed and the row's number.
#pragma once

#include <cstdint>

#include "common/random.h"
#include "worker/data/open_dataset.h"

namespace syncopate::worker {

struct ZipfCounts {
  std::int64_t rows = 1;  // of each table
  std::int64_t train = 60'000, test = 10'000;
};

// Returns a number in 0 .. count-1, small ones more often: k has the probability log((k+2) / (k+1)) / log(count + 1).
std::int64_t zipf_rank(Random& random, std::int64_t count);

DatasetPair make_zipf_ratings(const ZipfCounts& counts, std::uint64_t seed);
DatasetPair make_zipf_clicks(const ZipfCounts& counts, std::uint64_t seed);

}  // namespace syncopate::worker
