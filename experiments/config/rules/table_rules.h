// What works with recommenders, whose embeddings are row-sparse tables, and what does not. Pure.
#pragma once

#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// Whether the model is a recommender (worker/recommender), and whether its embeddings are row-sparse tables.
bool is_recommender(const RunConfig& config);
bool has_tables(const RunConfig& config);
// Whether --table-rows sizes the tables.
bool sizes_tables(const RunConfig& config);

// Options that cannot work with them: which, why, and what would be right. For validate().
Status validate_tables(const RunConfig& config);

}  // namespace syncopate::experiments
