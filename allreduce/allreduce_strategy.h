// AllReduceStrategy: synchronous data parallelism. Gradients are summed over all workers bucket by bucket, while
// backward still runs unless that is not wanted; every worker then applies the same update with the mean.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "allreduce/collective.h"
#include "allreduce/collective_activity.h"
#include "allreduce/sparse_exchange.h"
#include "common/codec/codec_config.h"
#include "common/optimizer.h"
#include "common/sync_strategy.h"

namespace syncopate::allreduce {

struct AllReduceOptions {
  OptimizerConfig optimizer;
  std::size_t bucket_bytes = 1 << 20;  // 0: the size is searched for in the first steps (bucket_search.h)
  // Told what the search has come to, or that the run was too short for it. From the compute thread; may be null.
  std::function<void(const std::string& finding)> on_search_end = nullptr;
  // False: nothing is sent before backward has ended. The sums are the same; how much overlap gains is then to be seen.
  bool overlap = true;
  // How gradients are compressed on their way, but for those of row-sparse tables.
  CodecConfig codec;
  std::uint64_t seed = 1;  // what the codec draws from, and what rows of tables begin with; the same on every rank
  // Of row-sparse tables:
  SparseExchange sparse_exchange = SparseExchange::kAuto;
  std::function<void(const std::string& finding)> on_exchange_found = nullptr;  // as ReplicatedTablesOptions::on_found
  Duration timeout = std::chrono::seconds(30);                                  // of every wait
  CollectiveActivity* activity = nullptr;  // is told of every operation; outlives the strategy
};

// `collective` and `clock` must outlive the strategy.
std::unique_ptr<SyncStrategy> make_allreduce_strategy(Collective& collective, const AllReduceOptions& options,
                                                      const Clock& clock);

}  // namespace syncopate::allreduce
