// Makes recommenders by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/status.h"
#include "worker/model.h"

namespace syncopate::worker {

// The most values that dense embeddings may have, all tables together: each value has a gradient and optimizer state.
inline constexpr std::int64_t kMostDenseEmbeddings = std::int64_t{1} << 27;

// As a suffix of a name: its embeddings are dense.
inline constexpr std::string_view kDenseSuffix = ":dense";

inline constexpr std::string_view kNcf = "ncf", kWideDeep = "wide-deep";

// Returns the part of a model's spec before the colon, if there is one.
inline std::string_view family_of(std::string_view spec) { return spec.substr(0, spec.find(':')); }

inline bool is_recommender(std::string_view spec) { return family_of(spec) == kNcf || family_of(spec) == kWideDeep; }

// `spec` is "ncf", "ncf:DIM", "wide-deep" or "wide-deep:DIM", where DIM is the width of an embedding; with the suffix
// ":dense" its tables are ordinary tensors (row_embedding.h). Samples must have two classes and one label; for ncf they
// must have two ids, a user and an item. Fails with invalid argument, saying what would be right.
Result<std::unique_ptr<Model>> make_recommender(const std::string& spec, const SampleForm& form, int batch_size,
                                                ComputeBackend& backend);

}  // namespace syncopate::worker
