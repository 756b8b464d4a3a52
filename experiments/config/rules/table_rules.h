// What works with recommenders, whose embeddings are row-sparse tables, and what does not. Pure.
#pragma once

#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// Return whether the model is a recommender (worker/recommender), and whether its embeddings are row-sparse tables.
bool is_recommender(const RunConfig& config);
bool has_tables(const RunConfig& config);
// Returns whether --table-rows sets the size of the tables.
bool sizes_tables(const RunConfig& config);

// For validate(): says which options cannot work with tables, why, and what would be right.
Status validate_tables(const RunConfig& config);

}  // namespace syncopate::experiments
