// Elastic allreduce where ranks die over real wires, and in shared memory in the midst of an operation of all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "allreduce/collective/schedule_collective.h"
#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"
#include "tests/support/elastic_job.h"
#include "tests/support/quiet_wire.h"

namespace syncopate::allreduce {
namespace {

using testing_support::connect_direct;
using testing_support::connect_group;
using testing_support::ElasticJob;
using testing_support::ElasticReference;
using testing_support::run_ranks;
using testing_support::States;
using testing_support::train_member;

constexpr std::int64_t kFirstStep = 3, kEndStep = 5;

// A collective whose rank dies in its operation number `operations`: having come to it, and without having ended it.
class MortalCollective final : public Collective {
 public:
  MortalCollective(Collective& inner, std::size_t operations) : inner_(inner), left_(operations) {}

  bool died() const { return left_ == 0; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const char* name() const override { return inner_.name(); }
  Result<std::span<float>> allocate(std::size_t elements) override { return inner_.allocate(elements); }
  Status all_reduce(std::span<float> buffer, TimePoint deadline) override {
    return live([&](TimePoint end) { return inner_.all_reduce(buffer, end); }, deadline);
  }
  Status broadcast(std::span<float> buffer, int root, TimePoint deadline) override {
    return live([&](TimePoint end) { return inner_.broadcast(buffer, root, end); }, deadline);
  }
  Status barrier(TimePoint deadline) override {
    return live([&](TimePoint end) { return inner_.barrier(end); }, deadline);
  }
  Status reduce_pair(std::span<float> buffer, int partner, TimePoint deadline) override {
    return live([&](TimePoint end) { return inner_.reduce_pair(buffer, partner, end); }, deadline);
  }
  Status all_to_all(std::span<const Bytes> given, std::span<Bytes> taken, TimePoint deadline) override {
    return live([&](TimePoint end) { return inner_.all_to_all(given, taken, end); }, deadline);
  }
  void interrupt() override { inner_.interrupt(); }
  TransportCounters counters() const override { return inner_.counters(); }

 private:
  // In the last operation it enters, and waits for nobody.
  template <typename Operation>
  Status live(const Operation& operation, TimePoint deadline) {
    if (left_ == 0) return Status::cancelled("dead");
    if (--left_ > 0) return operation(deadline);
    (void)operation(SteadyClock().now());
    return Status::cancelled("dead");
  }

  Collective& inner_;
  std::size_t left_;
};

// Runs one membership epoch over collectives that are made already. A rank that fails lets go of its own, as its
// process does, so that whoever waits for it is told. Returns whether the rank that was to die has died.
bool run_membership_epoch(const ElasticJob& job, std::vector<std::unique_ptr<Collective>>& group,
                          const std::vector<int>& workers, std::int64_t steps, States& states, int mortal = -1,
                          std::size_t operations = 0) {
  const bool begins = states.empty();
  std::atomic<bool> died = false;
  std::mutex mutex;
  States saved;
  run_ranks(static_cast<int>(workers.size()), [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const int worker = workers[at];
    MortalCollective collective(*group[at], rank == mortal ? operations : std::size_t{1} << 60);
    const TrainingState* restored = states.contains(worker) ? &states.at(worker) : nullptr;
    std::optional<TrainingState> state = train_member(job, workers, collective, begins && rank == 0, restored, steps);
    if (collective.died()) died = true;
    if (!state || state->step < steps) {
      group[at]->interrupt();  // so that it does not stay until all that it has sent has come
      group[at].reset();
    }
    const std::lock_guard lock(mutex);
    if (state) saved[worker] = std::move(*state);
  });
  for (auto& [worker, state] : saved) states[worker] = std::move(state);
  return died;
}

using Connect = std::function<std::vector<std::unique_ptr<Collective>>(int size)>;

void expect_survival(const Connect& connect, int size, std::size_t first, std::size_t step) {
  const ElasticJob job;
  std::vector<int> workers;
  for (int worker = 0; worker < size; ++worker) workers.push_back(worker);
  bool dies = true;
  for (std::size_t operations = first; dies && !testing::Test::HasFailure(); operations += step) {
    const int mortal = static_cast<int>(operations) % size;
    SCOPED_TRACE(fmt::format("rank {} of {} dies in operation {}", mortal, size, operations));
    States states;
    auto group = connect(size);
    dies = run_membership_epoch(job, group, workers, kFirstStep, states, mortal, operations);
    if (!dies) break;
    states.erase(mortal);
    std::vector<int> left = workers;
    std::erase(left, mortal);
    std::int64_t agreed = 0;
    for (const auto& [worker, state] : states) agreed = std::max(agreed, state.step);
    group = connect(size - 1);
    EXPECT_FALSE(run_membership_epoch(job, group, left, kEndStep, states));
    ElasticReference reference(job);
    reference.train(workers, 0, agreed);
    reference.train(left, agreed, kEndStep);
    for (const int worker : left) reference.expect(states[worker], fmt::format("worker {}", worker));
  }
}

TEST(ElasticDirect, GoesOnWithoutARankThatDiesInTheMidstOfAnyOperation) {
  for (int size = 2; size <= 4; ++size) expect_survival(connect_direct, size, 1, 1);
}

// Peers are told that a transport is gone.
class OverTransport final : public Collective {
 public:
  explicit OverTransport(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)), inner_(make_schedule_collective(*transport_)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const char* name() const override { return inner_->name(); }
  Result<std::span<float>> allocate(std::size_t elements) override { return inner_->allocate(elements); }
  Status all_reduce(std::span<float> buffer, TimePoint deadline) override {
    return inner_->all_reduce(buffer, deadline);
  }
  Status broadcast(std::span<float> buffer, int root, TimePoint deadline) override {
    return inner_->broadcast(buffer, root, deadline);
  }
  Status barrier(TimePoint deadline) override { return inner_->barrier(deadline); }
  Status reduce_pair(std::span<float> buffer, int partner, TimePoint deadline) override {
    return inner_->reduce_pair(buffer, partner, deadline);
  }
  Status all_to_all(std::span<const Bytes> given, std::span<Bytes> taken, TimePoint deadline) override {
    return inner_->all_to_all(given, taken, deadline);
  }
  void interrupt() override { inner_->interrupt(); }
  TransportCounters counters() const override { return inner_->counters(); }

 private:
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<ScheduleCollective> inner_;
};

class ElasticWires : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Over, ElasticWires, testing::Values("inproc", "shm", "sockets"),
                         [](const auto& wire) { return wire.param; });

TEST_P(ElasticWires, GoOnWithoutARankThatDies) {
  const Connect connect = [](int size) {
    std::vector<std::unique_ptr<Collective>> group;
    for (auto& transport : connect_group(GetParam(), size)) {
      group.push_back(std::make_unique<OverTransport>(std::move(transport)));
    }
    return group;
  };
  expect_survival(connect, 3, 2, 3);
}

}  // namespace
}  // namespace syncopate::allreduce
