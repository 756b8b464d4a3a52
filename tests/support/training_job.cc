#include "tests/support/training_job.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/strategy/allreduce_strategy.h"
#include "common/os/aligned_buffer.h"
#include "common/os/flush_denormals.h"
#include "ps/client/ps_strategy.h"
#include "ps/server/shard_server.h"
#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"
#include "worker/data/batch_loader.h"
#include "worker/local_strategy.h"
#include "worker/trainer.h"

namespace syncopate::testing_support {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(60);
constexpr std::size_t kBucketBytes = 256 * 1024;

class NoRecords final : public RecordSink {
 public:
  void add(const StepRecord& /*record*/) override {}
};

worker::BatchOrder order_of(const TrainingJob& job, int rank) {
  return {.seed = job.seed,
          .dataset_size = job.data->size(),
          .batch_size = job.batch_size,
          .rank = rank,
          .workers = job.workers,
          .parts = job.by_label ? *worker::parts_by_label(*job.data, job.workers) : nullptr};
}

std::unique_ptr<worker::Model> model_of(const TrainingJob& job, worker::ComputeBackend& backend) {
  return std::move(*worker::make_model(job.model, job.data->form(), job.batch_size, backend));
}

// One worker of `job`, on the calling thread.
std::vector<float> train_worker(const TrainingJob& job, int rank, SyncStrategy& strategy) {
  const SteadyClock clock;
  Activity activity;
  NoRecords records;
  const worker::BatchOrder order = order_of(job, rank);
  const std::unique_ptr<worker::ComputeBackend> backend = worker::make_onednn_backend();
  const std::unique_ptr<worker::Model> model = model_of(job, *backend);
  worker::BatchLoader batches(*job.data, order);
  const worker::TrainerOptions options{.chief = rank == 0,
                                       .seed = job.seed,
                                       .total_steps = job.steps,
                                       .steps_per_epoch = order.steps_per_epoch(),
                                       .schedule = {},
                                       .base_learning_rate = job.learning_rate,
                                       .minibatch_growth = static_cast<double>(job.workers)};
  std::vector<float> weights;
  const Status status = worker::train(options, {}, {*backend, *model, batches, strategy, records, clock, activity},
                                      [&](std::span<const float> final) {
                                        weights.assign(final.begin(), final.end());
                                        return Status();
                                      });
  EXPECT_TRUE(status.ok()) << "worker " << rank << ": " << status.message();
  return weights;
}

// The same, with the fault that is planted in the job.
std::vector<float> train_faulty_worker(const TrainingJob& job, int rank, SyncStrategy& strategy) {
  FaultyStrategy faulty(strategy, rank, job.fault);
  return train_worker(job, rank, faulty);
}

// A part of the arena, and with which rank's gradient its sum begins.
struct SummedPart {
  Range range;
  std::size_t first_rank = 0;
};

std::vector<SummedPart> parts_of(const ParamLayout& layout, const TrainingJob& job, SumOrder order) {
  if (order == SumOrder::kByRank) return {{{0, layout.size()}, 0}};
  std::vector<SummedPart> parts;
  for (const Range& bucket : buckets_in_backward_order(layout, kBucketBytes)) {
    const std::vector<Range> chunks = balanced_ranges(bucket.size(), static_cast<std::size_t>(job.workers));
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      parts.push_back({{bucket.begin + chunks[c].begin, bucket.begin + chunks[c].end}, c});
    }
  }
  return parts;
}

std::vector<float> first_of_equals(const std::vector<std::vector<float>>& weights, int workers) {
  for (int rank = 1; rank < workers; ++rank) {
    EXPECT_TRUE(weights[static_cast<std::size_t>(rank)] == weights[0])
        << "worker " << rank << " has other weights than worker 0";
  }
  return weights[0];
}

}  // namespace

ParamLayout layout_of(const TrainingJob& job) {
  const std::unique_ptr<worker::ComputeBackend> backend = worker::make_onednn_backend();
  return model_of(job, *backend)->layout();
}

std::vector<float> initial_weights_of(const TrainingJob& job) {
  const std::unique_ptr<worker::ComputeBackend> backend = worker::make_onednn_backend();
  const std::unique_ptr<worker::Model> model = model_of(job, *backend);
  std::vector<float> weights(model->layout().size());
  model->initialize(job.seed, weights);
  return weights;
}

std::vector<float> train_local(const TrainingJob& job) {
  TrainingJob alone = job;
  alone.workers = 1;
  alone.batch_size = job.batch_size * job.workers;
  const SteadyClock clock;
  worker::LocalStrategy strategy(job.optimizer, clock);
  return train_worker(alone, 0, strategy);
}

std::vector<float> train_allreduce(const TrainingJob& job) {
  const SteadyClock clock;
  const bool in_memory = job.schedule == allreduce::ScheduleKind::kDirect && job.wire == "shm";
  std::vector<std::unique_ptr<Transport>> endpoints;
  std::vector<std::unique_ptr<allreduce::Collective>> collectives;
  if (in_memory) {
    collectives = connect_direct(job.workers);
  } else {
    endpoints = connect_group(job.wire, job.workers);
    for (const auto& endpoint : endpoints) {
      collectives.push_back(allreduce::make_schedule_collective(*endpoint, {.kind = job.schedule}));
    }
  }
  std::vector<std::vector<float>> weights(collectives.size());
  run_ranks(job.workers, [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const auto strategy = allreduce::make_allreduce_strategy(*collectives[at],
                                                             {.optimizer = job.optimizer,
                                                              .bucket_bytes = kBucketBytes,
                                                              .overlap = job.overlap,
                                                              .codec = job.codec,
                                                              .timeout = kTimeout},
                                                             clock);
    weights[at] = train_faulty_worker(job, rank, *strategy);
  });
  return first_of_equals(weights, job.workers);
}

std::vector<float> train_ps_sync(const TrainingJob& job, int servers) {
  const SteadyClock clock;
  const ps::PsGroup group{.workers = job.workers, .servers = servers};
  const std::vector<std::unique_ptr<Transport>> endpoints = connect_group(job.wire, group.size());
  std::vector<std::vector<float>> weights(static_cast<std::size_t>(job.workers));
  run_ranks(group.size(), [&](int rank) {
    Transport& endpoint = *endpoints[static_cast<std::size_t>(rank)];
    if (group.is_worker(rank)) {
      const ps::Sharding sharding = is_layerwise(job.optimizer.kind) ? ps::kWholeTensors : ps::Sharding();
      ps::PsStrategy strategy({.group = group, .sharding = sharding, .timeout = kTimeout}, endpoint, clock, nullptr);
      weights[static_cast<std::size_t>(rank)] = train_faulty_worker(job, rank, strategy);
      return;
    }
    ps::ShardServer server({.group = group,
                            .consistency = *ps::Consistency::parse(job.consistency),
                            .optimizer = job.optimizer,
                            .timeout = kTimeout},
                           endpoint, clock);
    const Status status = server.serve();
    EXPECT_TRUE(status.ok()) << "shard " << group.shard_of_rank(rank) << ": " << status.message();
  });
  return first_of_equals(weights, job.workers);
}

std::vector<float> train_in_turns(const TrainingJob& job, SumOrder order) {
  const FlushDenormals flush;
  const std::unique_ptr<worker::ComputeBackend> backend = worker::make_onednn_backend();
  const std::unique_ptr<worker::Model> model = model_of(job, *backend);
  std::vector<std::unique_ptr<worker::BatchLoader>> batches;
  for (int rank = 0; rank < job.workers; ++rank) {
    batches.push_back(std::make_unique<worker::BatchLoader>(*job.data, order_of(job, rank)));
  }
  const std::size_t size = model->layout().size();
  const std::vector<SummedPart> parts = parts_of(model->layout(), job, order);
  AlignedBuffer weights(size), sum(size);
  std::vector<AlignedBuffer> gradients;
  for (int rank = 0; rank < job.workers; ++rank) gradients.emplace_back(size);
  model->initialize(job.seed, weights.span());
  OptimizerState state(job.optimizer, size);
  for (std::int64_t step = 0; step < job.steps; ++step) {
    for (std::size_t rank = 0; rank < batches.size(); ++rank) {
      model->forward(weights.span(), batches[rank]->next());
      model->backward(weights.span(), gradients[rank].span(), [](std::size_t) {});
    }
    for (const SummedPart& part : parts) {
      for (std::size_t i = part.range.begin; i < part.range.end; ++i) {
        float total = gradients[part.first_rank].data()[i];
        for (std::size_t k = 1; k < gradients.size(); ++k) {
          total += gradients[(part.first_rank + k) % gradients.size()].data()[i];
        }
        sum.data()[i] = total;
      }
    }
    Optimizer(job.optimizer, model->layout(), {0, size})
        .apply(weights.span(), sum.span(), state, 0,
               {.learning_rate = static_cast<float>(job.learning_rate),
                .gradient_scale = 1.0f / static_cast<float>(job.workers),
                .number = step + 1});
  }
  return {weights.span().begin(), weights.span().end()};
}

}  // namespace syncopate::testing_support
