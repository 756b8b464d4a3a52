// A whole training job in one test: real data, models, strategies and transports; workers and shards are threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "allreduce/schedule/schedule.h"
#include "common/codec/codec_config.h"
#include "common/optimizer/optimizer.h"
#include "tests/support/faulty_strategy.h"
#include "worker/data/dataset.h"

namespace syncopate::testing_support {

struct TrainingJob {
  const worker::Dataset* data = nullptr;
  std::string model = "mlp";
  OptimizerConfig optimizer;
  double learning_rate = 0.1;
  std::uint64_t seed = 1;  // of initial weights and data order
  std::int64_t steps = 100;
  int workers = 1;
  int batch_size = 8;     // of one worker
  bool by_label = false;  // each worker has a part of the data to itself (worker/data/label_parts.h)
  std::string wire = "shm";
  std::string consistency = "sync";  // of train_ps: one under which all workers have the same weights
  // Allreduce only:
  allreduce::ScheduleKind schedule = allreduce::ScheduleKind::kRing;  // kDirect over shm: the direct collective
  bool overlap = true;
  CodecConfig codec;
  PlantedFault fault = {};  // under allreduce and ps sync
};

// What the job trains, and what it begins with.
ParamLayout layout_of(const TrainingJob& job);
std::vector<float> initial_weights_of(const TrainingJob& job);

// The final weights of worker 0; the others' are expected to be the same, bit by bit.
std::vector<float> train_local(const TrainingJob& job);  // one worker, with the batch of all workers together
std::vector<float> train_allreduce(const TrainingJob& job);
std::vector<float> train_ps_sync(const TrainingJob& job, int servers);

// In which order the workers' gradients are summed, which is all in which synchronous modes may differ.
enum class SumOrder {
  kByRank,      // rank 0 + rank 1 + ...: ps, and the direct allreduce
  kAroundRing,  // in each bucket, chunk c of as many as there are workers: rank c + rank c+1 + ... + rank c-1
};

// What synchronous training means, in plain loops: the workers compute their gradients one after another, these are
// summed, and one optimizer applies their mean.
std::vector<float> train_in_turns(const TrainingJob& job, SumOrder order);

}  // namespace syncopate::testing_support
