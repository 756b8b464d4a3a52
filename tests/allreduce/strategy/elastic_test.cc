// Ranks that die at every message of a job, over every schedule: the others go on from the last step that any of them
// has finished, a new one joins them, and all come to the same bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/support/elastic_job.h"

namespace syncopate::allreduce {
namespace {

using testing_support::Death;
using testing_support::elastic_gradient;
using testing_support::ElasticJob;
using testing_support::ElasticReference;
using testing_support::layout_of;
using testing_support::States;
using testing_support::train_membership_epoch;

// A rank dies within the first steps; those that are left go on to the middle; then another joins.
constexpr std::int64_t kFirst = 3, kMiddle = 4, kEnd = 5;

std::vector<int> workers_of(int size) {
  std::vector<int> workers;
  for (int worker = 0; worker < size; ++worker) workers.push_back(2 * worker + 1);  // not the ranks
  return workers;
}

std::int64_t furthest(const States& states) {
  std::int64_t step = 0;
  for (const auto& [worker, state] : states) step = std::max(step, state.step);
  return step;
}

// False where the job ended before the rank could die.
bool dies_and_others_go_on(const ElasticJob& job, const std::vector<int>& workers, const Death& death) {
  SCOPED_TRACE(fmt::format("rank {} dies after {} messages", death.rank, death.messages));
  States states;
  if (!train_membership_epoch(job, workers, kFirst, death, states)) return false;
  const int lost = workers[static_cast<std::size_t>(death.rank)];
  states.erase(lost);
  std::vector<int> left = workers;
  std::erase(left, lost);
  const std::int64_t agreed = furthest(states);
  for (const auto& [worker, state] : states) EXPECT_GE(state.step, agreed - 1) << "worker " << worker;

  ElasticReference reference(job);
  reference.train(workers, 0, agreed);
  for (const auto& [worker, state] : states) {
    if (state.step == agreed) reference.expect(state, fmt::format("worker {} after the loss", worker));
  }
  EXPECT_FALSE(train_membership_epoch(job, left, kMiddle, std::nullopt, states));
  reference.train(left, agreed, kMiddle);
  for (const int worker : left) reference.expect(states[worker], fmt::format("worker {} among those left", worker));
  EXPECT_FALSE(train_membership_epoch(job, workers, kEnd, std::nullopt, states));
  reference.train(workers, kMiddle, kEnd);
  for (const int worker : workers) reference.expect(states[worker], fmt::format("worker {} in the end", worker));
  return true;
}

// Each rank dies at each message, or, of more than `most` ranks, each takes its turn: who dies matters less than when.
void expect_survival_of_all_deaths(const ElasticJob& job, int size, int most) {
  const std::vector<int> workers = workers_of(size);
  const int every = size <= most ? 1 : size;
  for (int first = 0; first < size / every; ++first) {
    int alive = 0;  // some have fewer messages than others
    std::size_t messages = 0;
    for (; alive < every && !testing::Test::HasFailure(); ++messages) {
      const int rank = (first + static_cast<int>(messages) % every) % size;
      alive = dies_and_others_go_on(job, workers, {rank, messages}) ? 0 : alive + 1;
    }
    EXPECT_GT(messages, 10u);
  }
}

void expect_same_bits(const ElasticJob& job, const States& states, const std::vector<int>& workers) {
  const Range dense = layout_of(job).dense();
  const TrainingState& first = states.at(workers[0]);
  for (const int worker : workers) {
    const TrainingState& own = states.at(worker);
    EXPECT_EQ(own.step, first.step);
    for (const std::string& name : first.names()) {
      if (name.find(".worker") != std::string::npos) continue;  // a worker's own
      for (const Range& piece : first.pieces(name)) {
        std::vector<float> values(piece.size()), expected(piece.size());
        ASSERT_TRUE(first.read(name, piece, expected).ok());
        ASSERT_TRUE(own.read(name, piece, values).ok()) << name << " of worker " << worker;
        ASSERT_EQ(values, expected) << name << " of worker " << worker;
      }
    }
    EXPECT_TRUE(own.covers(state_part::kWeights, dense));
  }
}

// What the worker has found in the steps before `end`, less what it keeps back of it: of a worker whose last step
// before `end` has failed, though others have finished it, after that.
void add_what_counts(const ParamLayout& layout, const TrainingState& state, int worker, std::int64_t end,
                     std::vector<float>& sum) {
  std::vector<float> residual(layout.size());
  const std::string name =
      state.step < end ? fmt::format("residual.of_failed_step.worker{}", worker) : state_part::residual_of(worker);
  const Status read = state.read(name, layout.dense(), residual);
  ASSERT_TRUE(read.ok()) << read.message();
  for (std::size_t i = 0; i < sum.size(); ++i) {
    for (std::int64_t step = 0; step < end; ++step) sum[i] += elastic_gradient(layout, worker, step, i);
    sum[i] -= residual[i];
  }
}

class ElasticAllReduce : public testing::TestWithParam<std::tuple<ScheduleKind, int>> {};

INSTANTIATE_TEST_SUITE_P(EverySchedule, ElasticAllReduce,
                         testing::Combine(testing::ValuesIn(kAllScheduleKinds), testing::Range(2, 6)),
                         [](const auto& tested) {
                           std::string name =
                               fmt::format("{}_{}", name_of(std::get<0>(tested.param)), std::get<1>(tested.param));
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(ElasticAllReduce, GoesOnWithoutARankThatDiesAtAnyMessageAndTakesOneIn) {
  const auto [kind, size] = GetParam();
  const ElasticJob job{.kind = kind};
  expect_survival_of_all_deaths(job, size, 3);
}

TEST(ElasticAllReduceOfTables, LeavesTheRowsOfTheLastStepThatAnyHasFinished) {
  for (const SparseExchange exchange : {SparseExchange::kRows, SparseExchange::kDense}) {
    const ElasticJob job{.optimizer = {.kind = OptimizerKind::kAdam}, .has_tables = true, .exchange = exchange};
    expect_survival_of_all_deaths(job, 3, 3);
  }
}

// With every codec all hold the same bits, whoever was lost when.
class ElasticCodecs : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Of, ElasticCodecs,
                         testing::Values("int8", "topk:0.2", "randomk:0.3", "sign", "powersgd:2", "onebit"),
                         [](const auto& tested) {
                           const std::string codec = tested.param;
                           return codec.substr(0, codec.find(':'));
                         });

TEST_P(ElasticCodecs, LeaveTheSameBitsOnAllThatAreLeft) {
  const bool is_one_bit_adam = GetParam() == std::string("onebit");
  ElasticJob job{.codec = *parse_codec(is_one_bit_adam ? "sign" : GetParam())};
  if (is_one_bit_adam) {
    job.codec.whole_updates = 2;  // compression begins while ranks are lost
    job.optimizer = {.kind = OptimizerKind::kAdam, .frozen_after = 2, .takes_momentum = true};
  }
  const std::vector<int> workers = workers_of(3);
  for (std::size_t messages = 0; messages < 1000; ++messages) {
    SCOPED_TRACE(fmt::format("after {} messages", messages));
    const Death death{static_cast<int>(messages % 3), messages};
    States states;
    if (!train_membership_epoch(job, workers, kFirst, death, states)) break;
    states.erase(workers[static_cast<std::size_t>(death.rank)]);
    std::vector<int> left = workers;
    left.erase(left.begin() + death.rank);
    train_membership_epoch(job, left, kMiddle, std::nullopt, states);
    expect_same_bits(job, states, left);
    train_membership_epoch(job, workers, kEnd, std::nullopt, states);
    expect_same_bits(job, states, workers);
    ASSERT_FALSE(HasFailure());
  }
}

// What every worker has found in the steps that count is in the weights, or is kept back by it: nothing is counted
// twice, and nothing is lost but what lost workers have kept back. Values are sent as they are, so that it is exact.
class ElasticErrorFeedback : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Of, ElasticErrorFeedback, testing::Values("topk:0.2", "randomk:0.3"), [](const auto& tested) {
  const std::string codec = tested.param;
  return codec.substr(0, codec.find(':'));
});

// Two of four workers are lost, the one that dies and the next one: divisions by 4 and 2 are exact.
TEST_P(ElasticErrorFeedback, CountsEveryGradientOfEveryStepOnce) {
  const ElasticJob job{
      .optimizer = {.kind = OptimizerKind::kSgd}, .codec = *parse_codec(GetParam()), .rate_by_workers = true};
  const ParamLayout layout = layout_of(job);
  const std::vector<int> workers = workers_of(4);
  std::size_t of_failed_steps = 0;
  for (std::size_t messages = 0; messages < 1000; ++messages) {
    SCOPED_TRACE(fmt::format("after {} messages", messages));
    const int dead = static_cast<int>(messages % 4);
    States states;
    if (!train_membership_epoch(job, workers, kFirst, Death{dead, messages}, states)) break;
    if (states.empty()) continue;
    const int lost[] = {workers[static_cast<std::size_t>(dead)], workers[static_cast<std::size_t>(dead + 1) % 4]};
    std::vector<int> left = workers;
    for (const int worker : lost) std::erase(left, worker);
    States those_left;
    for (const int worker : left) {
      if (states.contains(worker)) those_left[worker].merge(states[worker]);
    }
    const std::int64_t agreed = furthest(those_left);
    // Who has finished a step that those left have not, and is lost, does not say what it had kept back before.
    const auto is_ahead = [&](int worker) { return states.contains(worker) && states[worker].step > agreed; };
    if (std::ranges::any_of(lost, is_ahead)) continue;
    std::vector<float> expected(layout.size());
    for (const int worker : lost) {
      if (agreed > 0) add_what_counts(layout, states.at(worker), worker, agreed, expected);
    }
    const bool begins = those_left.empty();
    train_membership_epoch(job, left, kMiddle, std::nullopt, those_left);
    for (const int worker : left) {
      of_failed_steps += !begins && states.contains(worker) && states[worker].step < agreed ? 1 : 0;
      add_what_counts(layout, those_left.at(worker), worker, kMiddle, expected);
    }
    std::vector<float> weights(layout.size());
    ASSERT_TRUE(those_left.at(left[0]).read(state_part::kWeights, {0, layout.size()}, weights).ok());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      ASSERT_EQ(16 * (static_cast<float>(i % 7) - weights[i]), expected[i]) << "element " << i;
    }
  }
  EXPECT_GT(of_failed_steps, 0u) << "some were behind by a step that counts";
}

}  // namespace
}  // namespace syncopate::allreduce
