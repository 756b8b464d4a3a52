// The data sets for recommenders, by name, for open_dataset.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "worker/data/open_dataset.h"

namespace syncopate::worker {

// The most rows of a table whose size --table-rows sets.
inline constexpr std::int64_t kMostTableRows = 1'000'000'000;

// Returns whether `name` has the form of one of:
//   ratings                           files of MovieLens in data_dir or data_dir/ml-* (ratings_reader.h)
//   clicks:ROWS                       Criteo's train.txt in data_dir/criteo or data_dir (clicks_reader.h)
//   zipf-ratings:TRAIN-TEST-ROWS      generated (zipf_sets.h)
//   zipf-clicks:TRAIN-TEST-ROWS
bool is_recommender_set(const std::string& name);

// As in open_dataset.h, for these names.
Status check_recommender_set(const std::string& name);
Result<DatasetPair> open_recommender_set(const std::string& name, const std::string& data_dir, std::uint64_t seed);
Result<SampleForm> recommender_form(const std::string& name, const std::string& data_dir);

}  // namespace syncopate::worker
