#include "experiments/lab/report/comparison_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample_comparison.h"

namespace syncopate::experiments {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string answer_of(const ComparisonReport& report) { return answer_line(report, figures_of(report)); }

TEST(ComparisonAnswer, SaysThatTheFastestLearntWorseInOneRound) {
  const ComparedRow async = learnt(sample_row("ps:async workers=8", {4000}), {0.801});
  const ComparedRow sync = learnt(sample_row("ps:sync workers=2", {1000}), {0.940});
  const ComparedRow ring = learnt(sample_row("allreduce workers=4", {3000}), {0.938});
  EXPECT_EQ(answer_of(sample_comparison({sync, ring, async})),
            "Answer: ps:async workers=8 had the most samples/s in 1 round, too few to say that it is the fastest. But "
            "ps:async workers=8 learnt worse than ps:sync workers=2: accuracy 0.8010 against 0.9400 at the end, more "
            "than the size of the test set explains (other seeds may differ). Of the rows that are not shown to have "
            "learnt worse, allreduce workers=4 had the most samples/s.");
}

ComparedRow at(const std::string& mode, const std::string& workers, const std::vector<double>& rates) {
  ComparedRow row = sample_row(mode + " workers=" + workers, rates);
  row.mode = mode;
  row.values = {{"workers", workers}};
  return row;
}

TEST(ComparisonAnswer, SaysWhichModeIsAheadAtEachValueOfWhatIsVaried) {
  ComparisonReport report = sample_comparison({at("allreduce", "1", {1000, 1000}), at("allreduce", "2", {2000, 2000}),
                                               at("allreduce", "4", {3000, 3000}), at("ps:async", "1", {900, 900}),
                                               at("ps:async", "2", {2000, 2000}), at("ps:async", "4", {2500, 2500})});
  report.simulated = true;
  EXPECT_EQ(answer_of(report),
            "Answer: in this simulation allreduce is the fastest at workers=1 and 4; allreduce and ps:async are "
            "equally fast at workers=2.");
  EXPECT_EQ(
      answer_of(sample_comparison(
          {at("allreduce", "1", {1000, 1010, 990, 1005, 995}), at("ps:async", "1", {990, 1015, 985, 1010, 999}),
           at("allreduce", "2", {2000, 2010, 1990, 2005, 1995}), at("ps:async", "2", {1000, 1010, 990, 1005, 995})})),
      "Answer: over 5 rounds no difference is shown between allreduce and ps:async at workers=1; allreduce is "
      "the fastest at workers=2.");
  EXPECT_EQ(answer_of(sample_comparison({at("allreduce", "1", {1000}), at("ps:async", "1", {990}),
                                         at("allreduce", "2", {2000}), at("ps:async", "2", {2100})})),
            "Answer: in 1 round allreduce had the most samples/s at workers=1; ps:async had the most samples/s at "
            "workers=2: too few rounds to say that one is the fastest.");
  EXPECT_THAT(answer_of(sample_comparison({at("allreduce", "1", {1000}), at("allreduce", "2", {2000})})),
              HasSubstr("allreduce workers=2 had the most"))
      << "one mode is no choice";
}

TEST(ComparisonAnswer, IsSilentOnLearningThatDiffersByChance) {
  const ComparedRow fast = learnt(sample_row("ps:async", {4000}), {0.930});
  const ComparedRow slow = learnt(sample_row("ps:sync", {1000}), {0.940});
  EXPECT_THAT(answer_of(sample_comparison({slow, fast})), Not(HasSubstr("learnt"))) << "2,000 labels leave 0.0077";
  EXPECT_THAT(answer_of(sample_comparison({learnt(slow, {0.940}, 100'000), learnt(fast, {0.930}, 100'000)})),
              HasSubstr("ps:async learnt worse than ps:sync"));
  EXPECT_THAT(answer_of(sample_comparison({learnt(slow, {0.940}, 0), learnt(fast, {0.5}, 0)})),
              Not(HasSubstr("learnt")))
      << "a test set whose size is not known shows nothing in one round";
  EXPECT_THAT(answer_of(sample_comparison({learnt(slow, {0.801}), learnt(fast, {0.940})})), Not(HasSubstr("learnt")))
      << "the fastest learnt best";
}

TEST(ComparisonAnswer, HoldsLearningToTheRoundsWhereTheyAreEnough) {
  const ComparedRow slow = learnt(sample_row("ps:sync", {1000, 1010, 990, 1005, 995}), {.94, .93, .94, .95, .94});
  const ComparedRow fast = sample_row("ps:async", {2000, 2030, 1990, 2000, 1985});
  EXPECT_THAT(answer_of(sample_comparison({slow, learnt(fast, {.90, .89, .91, .90, .90})})),
              EndsWith("But ps:async learnt worse than ps:sync: accuracy 0.9000 against 0.9400 at the end, beyond the "
                       "noise of the rounds. Of the rows that are not shown to have learnt worse, ps:sync had the most "
                       "samples/s."));
  // Each round's test set would leave less to chance than these differences; the seeds do not.
  EXPECT_THAT(answer_of(sample_comparison({slow, learnt(fast, {.85, .99, .80, .99, .85})})), Not(HasSubstr("learnt")));
}

TEST(ComparisonAnswer, HoldsThoseThatAreEquallyFastToWhatTheyLearnt) {
  ComparisonReport report = sample_comparison({learnt(sample_row("allreduce", {2000, 2000}), {.80, .81}),
                                               learnt(sample_row("ps:sync", {2000, 2000}), {.94, .94}),
                                               learnt(sample_row("ps:async", {1999, 1999}), {.70, .71})});
  report.simulated = true;
  EXPECT_THAT(answer_of(report), HasSubstr("equally fast, within 0.1 %. But allreduce and ps:async learnt worse than "
                                           "ps:sync: accuracy 0.8050 and 0.7050 against 0.9400"));
}

}  // namespace
}  // namespace syncopate::experiments
