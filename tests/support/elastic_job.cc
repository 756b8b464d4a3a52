#include "tests/support/elastic_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "allreduce/collective/schedule_collective.h"
#include "tests/support/cluster.h"
#include "tests/support/quiet_wire.h"

namespace syncopate::testing_support {
namespace {

constexpr std::uint64_t kSeed = 3;

float initial_weight(std::size_t element) { return static_cast<float>(element % 7); }

double rate_of(const ElasticJob& job, std::size_t workers) {
  return job.rate_by_workers ? static_cast<double>(workers) / 16 : 0.25;
}

// Up to three rows of a table of 40, of which some are others' as well.
std::vector<RowKey> keys_of(int worker, std::int64_t step) {
  const auto first = static_cast<RowKey>((7 * worker + 5 * static_cast<int>(step)) % 20);
  std::vector<RowKey> keys{first, first + 4, first + 9};
  keys.resize(static_cast<std::size_t>((worker + static_cast<int>(step)) % 4));
  if (keys.size() == 3 && first > 15) keys.back() = 39;
  return keys;
}
float row_gradient(int worker, std::int64_t step, RowKey key, std::size_t column) {
  return static_cast<float>((3 * worker + static_cast<int>(step) + static_cast<int>(key + column)) % 9 - 4);
}

// One worker's part in a membership epoch.
class Trainee {
 public:
  Trainee(const ElasticJob& job, const std::vector<int>& workers, int worker, SyncStrategy& strategy)
      : layout_(layout_of(job)), rate_(rate_of(job, workers.size())), worker_(worker), strategy_(strategy) {
    arenas_ = *strategy.allocate(layout_);
  }

  Status train(bool begins, const TrainingState* restored, std::int64_t steps) {
    for (std::size_t i = 0; i < arenas_.weights.size(); ++i) arenas_.weights[i] = begins ? initial_weight(i) : -1.0f;
    if (restored != nullptr) SYNCOPATE_RETURN_IF_ERROR(strategy_.resumable()->restore(*restored));
    const Result<std::vector<Range>> buckets = strategy_.join();
    if (!buckets.ok()) return buckets.status();
    for (std::int64_t step = strategy_.first_step(); step < steps; ++step) {
      SYNCOPATE_RETURN_IF_ERROR(train_step(step, *buckets));
    }
    return strategy_.leave();
  }

 private:
  Status train_step(std::int64_t step, const std::vector<Range>& buckets) {
    const std::vector<RowKey> keys = keys_of(worker_, step);
    const std::vector<RowKeys> rows(layout_.tables().size(), keys);
    strategy_.begin_step({.step = step, .learning_rate = rate_, .rows = rows});
    for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      const Range range = buckets[bucket];
      if (range.begin >= layout_.dense().begin) {
        for (std::size_t i = range.begin; i < range.end; ++i) {
          arenas_.gradients[i] = elastic_gradient(layout_, worker_, step, i);
        }
      } else {
        fill_rows(step, keys);
      }
      strategy_.gradient_ready(bucket);
    }
    return strategy_.finish_step().status();
  }

  void fill_rows(std::int64_t step, RowKeys keys) {
    const TensorSpec& table = layout_.tables()[0];
    const std::span<float> room = slice(arenas_.gradients, table.room_of(keys.size()));
    for (std::size_t i = 0; i < room.size(); ++i) {
      room[i] = row_gradient(worker_, step, keys[i / table.width()], i % table.width());
    }
  }

  const ParamLayout layout_;
  const double rate_;
  const int worker_;
  SyncStrategy& strategy_;
  ParamArenas arenas_;
};

}  // namespace

ParamLayout layout_of(const ElasticJob& job) {
  ParamLayout layout;
  if (job.has_tables) layout.add_table("rows", 40, 3, {.rows_a_step = 4, .limit = 0.5f});
  layout.add("first", {7, 3});
  layout.add("second", {16});
  layout.add("third", {9, 5});
  return layout;
}

float elastic_gradient(const ParamLayout& layout, int worker, std::int64_t step, std::size_t element) {
  const bool is_padding = std::ranges::none_of(layout.tensors(), [&](const TensorSpec& tensor) {
    return element >= tensor.range.begin && element < tensor.range.end;
  });
  if (is_padding) return 0;
  return static_cast<float>((11 * worker + 5 * static_cast<int>(step) + 3 * static_cast<int>(element)) % 17 - 8);
}

std::optional<TrainingState> train_member(const ElasticJob& job, const std::vector<int>& workers,
                                          allreduce::Collective& collective, bool begins, const TrainingState* restored,
                                          std::int64_t steps) {
  const SteadyClock clock;
  const allreduce::AllReduceOptions options{.optimizer = job.optimizer,
                                            .bucket_bytes = 64,
                                            .codec = job.codec,
                                            .seed = kSeed,
                                            .sparse_exchange = job.exchange,
                                            .timeout = std::chrono::seconds(60),
                                            .workers = workers,
                                            .elastic = true};
  const auto strategy = allreduce::make_allreduce_strategy(collective, options, clock);
  const int worker = workers[static_cast<std::size_t>(collective.rank())];
  const Status status = Trainee(job, workers, worker, *strategy).train(begins, restored, steps);
  EXPECT_TRUE(status.ok() || status.code() == Code::kCancelled || status.code() == Code::kPeerLost) << status.message();
  TrainingState state;
  if (!strategy->resumable()->save(state).ok()) return std::nullopt;
  return state;
}

bool train_membership_epoch(const ElasticJob& job, const std::vector<int>& workers, std::int64_t steps,
                            const std::optional<Death>& death, States& states) {
  const auto size = static_cast<int>(workers.size());
  QuietWire wire(size);
  std::vector<std::optional<TrainingState>> saved(workers.size());
  const bool begins = states.empty();
  std::atomic<bool> died = false;
  run_ranks(size, [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const std::size_t messages = death && death->rank == rank ? death->messages : std::size_t{1} << 60;
    MortalTransport transport(wire.endpoint(rank), messages);
    {
      const auto collective = allreduce::make_schedule_collective(transport, {.kind = job.kind});
      const TrainingState* restored = states.contains(workers[at]) ? &states.at(workers[at]) : nullptr;
      saved[at] = train_member(job, workers, *collective, begins && rank == 0, restored, steps);
      EXPECT_TRUE(death || saved[at]->step == steps);
    }
    if (transport.died()) died = true;
    wire.stop(rank);
  });
  for (std::size_t rank = 0; rank < workers.size(); ++rank) {
    if (saved[rank]) states[workers[rank]] = std::move(*saved[rank]);
  }
  return died;
}

ElasticReference::ElasticReference(const ElasticJob& job)
    : job_(job),
      layout_(layout_of(job)),
      optimizer_(job.optimizer),
      weights_(layout_.size()),
      remembered_(job.optimizer, weights_.size()),
      tables_(row_tables_of(layout_, kSeed, job.optimizer)) {
  for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] = initial_weight(i);
}

void ElasticReference::train(const std::vector<int>& workers, std::int64_t begin, std::int64_t end) {
  for (std::int64_t step = begin; step < end; ++step) {
    std::vector<float> sum(weights_.size());
    for (const int worker : workers) {
      for (std::size_t i = layout_.dense().begin; i < sum.size(); ++i) {
        sum[i] += elastic_gradient(layout_, worker, step, i);
      }
    }
    const UpdateStep update{.learning_rate = static_cast<float>(rate_of(job_, workers.size())),
                            .gradient_scale = 1.0f / static_cast<float>(workers.size()),
                            .number = step + 1};
    optimizer_.apply(weights_, sum, remembered_, 0, update);
    if (job_.has_tables) update_rows(workers, update);
  }
  steps_ = end;
}

void ElasticReference::update_rows(const std::vector<int>& workers, const UpdateStep& update) {
  const std::size_t width = layout_.tables()[0].width();
  std::map<RowKey, std::vector<float>> sums;
  for (const int worker : workers) {
    for (const RowKey key : keys_of(worker, update.number - 1)) {
      std::vector<float>& sum = sums.try_emplace(key, width).first->second;
      for (std::size_t i = 0; i < width; ++i) sum[i] += row_gradient(worker, update.number - 1, key, i);
    }
  }
  for (const auto& [key, sum] : sums) EXPECT_TRUE(tables_[0].update(std::vector{key}, sum, update).ok());
}

void ElasticReference::expect(const TrainingState& state, const std::string& whose) const {
  const Range dense = layout_.dense();
  TrainingState own;
  own.put(state_part::kWeights, dense.begin, slice(std::span(weights_), dense));
  remembered_.save(dense, 0, own);
  EXPECT_EQ(state.step, steps_) << whose;
  for (const std::string& name : own.names()) {
    std::vector<float> expected(dense.size()), actual(dense.size());
    ASSERT_TRUE(own.read(name, dense, expected).ok());
    const Status read = state.read(name, dense, actual);
    ASSERT_TRUE(read.ok()) << whose << ": " << read.message();
    ASSERT_EQ(actual, expected) << whose << ": " << name;
  }
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    RowsState expected;
    tables_[table].save(expected);
    ASSERT_TRUE(state.rows.at(table) == expected) << whose << ": rows of table " << table;
  }
}

}  // namespace syncopate::testing_support
