#include "allreduce/strategy/bucket_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::allreduce {
namespace {

using std::literals::chrono_literals::operator""ms;
using testing::Each;
using testing::ElementsAre;

constexpr std::size_t kKiB = 1024;

// Tensors of so many KiB.
ParamLayout layout_of(std::vector<std::size_t> sizes) {
  ParamLayout layout;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    layout.add("tensor " + std::to_string(i), {static_cast<std::int64_t>(sizes[i] * kKiB / sizeof(float))});
  }
  return layout;
}

std::vector<std::size_t> sizes_of(const std::vector<BucketCandidate>& candidates) {
  std::vector<std::size_t> sizes;
  for (const BucketCandidate& candidate : candidates) sizes.push_back(candidate.bytes / kKiB);
  return sizes;
}

TEST(BucketCandidates, GoFrom64KibibytesByFoursToTheWholeModel) {
  const ParamLayout layout = layout_of(std::vector<std::size_t>(100, 50));
  const std::vector<BucketCandidate> candidates = bucket_candidates(layout);
  EXPECT_THAT(sizes_of(candidates), ElementsAre(64, 256, 1024, 4096, 16384));
  for (const BucketCandidate& candidate : candidates) {
    EXPECT_EQ(candidate.buckets, buckets_in_backward_order(layout, candidate.bytes));
  }
  EXPECT_EQ(candidates.back().buckets.size(), 1u);
}

TEST(BucketCandidates, AreOnesThatCutTheModelInDifferentWays) {
  EXPECT_THAT(sizes_of(bucket_candidates(layout_of({40}))), ElementsAre(64));
  EXPECT_THAT(sizes_of(bucket_candidates(layout_of({20, 20}))), ElementsAre(64));
  EXPECT_THAT(sizes_of(bucket_candidates(layout_of({5000, 5000}))), ElementsAre(64, 16384));
}

TEST(BucketSearch, GivesEachCandidateTheSameTurnsInSpiteOfDrift) {
  for (std::size_t count = 2; count <= 8; ++count) {
    BucketSearch search(count);
    std::vector<int> turns(count);
    int step = 0;
    for (; !search.ended(); ++step) {
      ASSERT_LT(search.candidate(), count);
      if (step >= BucketSearch::kSkipped) ++turns[search.candidate()];
      search.step_took(100ms + step * 1ms);
    }
    EXPECT_EQ(step, search.steps());
    EXPECT_LE(step, BucketSearch::kMostSteps);
    EXPECT_GE(turns[0], 10);
    for (const int each : turns) EXPECT_EQ(each, turns[0]);
    EXPECT_THAT(search.medians(), Each(search.medians()[0])) << "though each step took longer than the one before";
  }
}

TEST(BucketSearch, FindsMediansWhateverTheFirstStepsAndAFewOthersTook) {
  const std::vector<Duration> own = {4ms, 2ms, 3ms};
  BucketSearch search(own.size());
  std::vector<int> turns(own.size());
  for (int step = 0; !search.ended(); ++step) {
    const std::size_t candidate = search.candidate();
    const bool is_outlier = step < BucketSearch::kSkipped || ++turns[candidate] % 3 == 0;
    search.step_took(is_outlier ? 1000ms : own[candidate]);
  }
  EXPECT_EQ(search.medians(), own);
}

TEST(BucketSearch, OfOneCandidateHasEndedAtOnce) { EXPECT_TRUE(BucketSearch(1).ended()); }

TEST(BucketSearch, TellsWhatItHasComeTo) {
  const std::vector<BucketCandidate> candidates = bucket_candidates(layout_of({200, 200, 200, 200}));
  const std::vector<float> times = {4.0f, 2.0f, 3.0f};
  ASSERT_THAT(sizes_of(candidates), ElementsAre(64, 1024));
  EXPECT_EQ(describe_search(candidates, std::span(times).first(2), 2),
            "1 MiB; a step took 2.000 ms with 0.0625 MiB, 1.000 ms with 1 MiB");
  EXPECT_EQ(fastest(times), 1u);
}

}  // namespace
}  // namespace syncopate::allreduce
