// What works with recommenders, whose embeddings are row-sparse tables, and what does not. Pure.
#pragma once

#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Return whether the model is a recommender (worker/recommender), and whether its embeddings are row-sparse tables.
bool is_recommender(const RunSettings& config);
bool has_tables(const RunSettings& config);
// Returns whether --table-rows sets the size of the tables.
bool sizes_tables(const RunSettings& config);

// For check_rules(): says which options cannot work with tables, why, and what would be right.
Status validate_tables(const ResolvedRun& config);

}  // namespace syncopate::experiments
