// Ratings as implicit feedback: which user has rated which item, whatever the rating was (He et al. 2017, "Neural
// Collaborative Filtering", section 4.1).
//
// Each user's latest rating (of equal times, the last in the file) is reserved for the test. Training: every other
// rating is a positive, followed by four negatives, drawn uniformly and anew in each epoch from the items that the user
// has not rated in training. Test: in groups of kRankedItems, the positive and 99 different items that the user has not
// rated. Users with only one rating, or with fewer than 99 unrated items, are in training only; if there are very many
// users, kMostTestedUsers are tested, evenly chosen.
#pragma once

#include <cstdint>

#include "common/status.h"
#include "worker/data/dataset.h"
#include "worker/data/open_dataset.h"
#include "worker/data/ratings_reader.h"

namespace syncopate::worker {

inline constexpr int kNegatives = 4;  // for each positive in training
inline constexpr int kMostTestedUsers = 10'000;

SampleForm form_of_ratings(std::int64_t users, std::int64_t items);

// Fails with data loss if nobody can be tested.
Result<DatasetPair> make_ratings(const RatingTable& table, std::uint64_t seed);

}  // namespace syncopate::worker
