// One job, one curve: local, allreduce and synchronous parameter servers come to the same weights, within rounding.
//
// What may differ is the order of sums: over W·B samples at once, or over W sums of B. That is one rounding of a
// gradient, but training can magnify it without bound: a ReLU whose input is within rounding of zero is on in one mode
// and off in the other, and adam divides a gradient that is nothing but rounding by its own size. At their usual rates
// three jobs in ten meet such a unit within 100 steps, by chance of its seed, also where plain loops in one thread
// differ in nothing but the order of their sums. So it is proved in two steps. At the usual rates every mode equals,
// bit by bit, plain loops that sum in its order. At a hundredth of them, at which weights still move by far more than
// the tolerance, every mode equals local within rounding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "experiments/run/compare.h"
#include "tests/support/run_program.h"
#include "tests/support/training_job.h"
#include "worker/data/open_dataset.h"

namespace syncopate::experiments {
namespace {

using testing_support::SumOrder;
using testing_support::train_allreduce;
using testing_support::train_in_turns;
using testing_support::train_local;
using testing_support::train_ps_sync;
using testing_support::TrainingJob;

// Of relative distances: above all rounding that has been seen (1e-5), and well below what other batches come to.
constexpr double kRounding = 5e-5;
constexpr double kOtherBatches = 2e-4;

struct Case {
  std::string model;
  std::string optimizer;
  int workers;
};

void PrintTo(const Case& tested, std::ostream* out) {
  *out << tested.model << ", " << tested.optimizer << ", " << tested.workers << " workers";
}

// Relative to the largest weight.
double largest_difference(const std::vector<float>& first, const std::vector<float>& second) {
  double largest = 0, scale = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(first[i]) - second[i]));
    scale = std::max(scale, std::abs(static_cast<double>(first[i])));
  }
  return largest / scale;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* model : {"mlp", "lenet"}) {
    for (const char* optimizer : {"sgd", "adam"}) {
      for (int workers = 1; workers <= 4; ++workers) cases.push_back({model, optimizer, workers});
    }
  }
  return cases;
}

class Equality : public testing::TestWithParam<Case> {
 protected:
  TrainingJob job_at(double part_of_usual_rate) const {
    RunConfig config;
    config.optimizer = GetParam().optimizer;
    return {.data = data_.train.get(),
            .model = GetParam().model,
            .optimizer = optimizer_of(config),
            .learning_rate = usual_learning_rate(config.optimizer) * part_of_usual_rate,
            .steps = testing_support::kSanitized ? 10 : 100,
            .workers = GetParam().workers,
            .batch_size = GetParam().model == "lenet" ? 2 : 8};
  }

 private:
  const worker::DatasetPair data_ =
      std::move(*worker::open_dataset("digits:1024-64", testing_support::shared_data_dir(), 1));
};

INSTANTIATE_TEST_SUITE_P(Of, Equality, testing::ValuesIn(all_cases()), [](const auto& tested) {
  return fmt::format("{}_{}_{}workers", tested.param.model, tested.param.optimizer, tested.param.workers);
});

TEST_P(Equality, OfLocalAllreduceAndPsSyncIsWithinRounding) {
  const TrainingJob job = job_at(0.01);
  const std::vector<float> local = train_local(job);
  double furthest = 0, largest = 0;
  const auto compare = [&](const std::string& mode, const std::vector<float>& weights) {
    const double distance = relative_distance(local, weights);
    furthest = std::max(furthest, distance);
    largest = std::max(largest, largest_difference(local, weights));
    EXPECT_LT(distance, kRounding) << mode;
  };
  compare("allreduce", train_allreduce(job));
  for (int servers = 1; servers <= 3; ++servers) {
    compare(fmt::format("ps sync, {} servers", servers), train_ps_sync(job, servers));
  }
  fmt::print("{}, {}, {} workers: relative distance {:.2g}, largest difference of a weight {:.2g}\n", job.model,
             GetParam().optimizer, job.workers, furthest, largest);
}

TEST_P(Equality, WithWorkersInTurnsIsExactAtTheUsualRate) {
  const TrainingJob job = job_at(1);
  const std::vector<float> by_rank = train_in_turns(job, SumOrder::kByRank);
  for (int servers = 1; servers <= 3; ++servers) {
    EXPECT_TRUE(train_ps_sync(job, servers) == by_rank) << servers << " servers";
  }
  // So the direct allreduce and synchronous parameter servers come to the very same weights.
  for (const char* wire : {"shm", "inproc"}) {
    TrainingJob direct = job;
    direct.schedule = allreduce::ScheduleKind::kDirect;
    direct.wire = wire;
    EXPECT_TRUE(train_allreduce(direct) == by_rank) << "direct over " << wire;
  }
  const std::vector<float> around_ring = train_in_turns(job, SumOrder::kAroundRing);
  EXPECT_TRUE(train_allreduce(job) == around_ring);
  TrainingJob without_overlap = job;
  without_overlap.overlap = false;
  EXPECT_TRUE(train_allreduce(without_overlap) == around_ring);
}

// What the tolerance is worth: batches of one sample more, which are other batches, are well beyond it.
class EqualityOfOtherBatches : public Equality {};

INSTANTIATE_TEST_SUITE_P(Of, EqualityOfOtherBatches,
                         testing::Values(Case{"mlp", "sgd", 2}, Case{"mlp", "adam", 2}, Case{"lenet", "sgd", 2},
                                         Case{"lenet", "adam", 2}));

TEST_P(EqualityOfOtherBatches, DoesNotHold) {
  if (testing_support::kSanitized) GTEST_SKIP() << "ten steps are too few to tell";
  const TrainingJob job = job_at(0.01);
  TrainingJob other = job;
  other.batch_size += 1;
  EXPECT_GT(relative_distance(train_local(job), train_local(other)), kOtherBatches);
}

}  // namespace
}  // namespace syncopate::experiments
