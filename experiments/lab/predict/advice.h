// What follows from a search, in sentences. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/predict/advise_request.h"
#include "prediction/advice/search.h"
#include "prediction/reproduction/validated_error.h"

namespace syncopate::experiments {

// How far the forms have been from published measurements. Those of tree and halving-doubling, which nobody has
// measured in a table of ours, are taken to be the ring's.
struct KnownErrors {
  prediction::ValidatedError allreduce;
  prediction::ValidatedError servers;
};
KnownErrors known_errors();

// Which way is the best; over which links, workers and servers either mode is ahead; what asynchronous servers could
// reach at most; what does not fit into memory. No difference is claimed that is smaller than the median errors.
std::vector<std::string> advice(const AdviseRequest& request, const prediction::AdvisedJob& job, int workers,
                                const prediction::SearchResult& result, const KnownErrors& errors);

// Says what the errors are and where they come from; several sentences that end with a newline.
std::string how_sure(const KnownErrors& errors);

// Returns "ring allreduce, buckets of 25.00 MB" or "asynchronous, at best: servers: 4, even shards".
std::string way_name(const prediction::Way& way, int hosts);

}  // namespace syncopate::experiments
