#include "experiments/lab/report/enough_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/random.h"
#include "experiments/lab/report/comparison_figures.h"

namespace syncopate::experiments {
namespace {

constexpr double kMargin = 0.02;

// A comparison that looks at its figures again and again.
class Comparison {
 public:
  explicit Comparison(std::size_t rows) {
    report_.rows.resize(rows);
    report_.analyses = kMostAnalyses;
  }

  // Adds a round in which the last row is `factor` times as fast as the others, and each deviates by `deviation`, alike
  // from round to round by this autocorrelation.
  void add_round(Random& random, double factor, double deviation, double alike) {
    off_.resize(report_.rows.size());
    for (std::size_t row = 0; row < report_.rows.size(); ++row) {
      const double fresh = report_.order.empty() ? 1 : std::sqrt(1 - alike * alike);
      off_[row] = (report_.order.empty() ? 0 : alike * off_[row]) + fresh * random.normal();
      RunReport round;
      round.samples_per_second = 1000 * (row + 1 == report_.rows.size() ? factor : 1) * std::exp(deviation * off_[row]);
      report_.rows[row].rounds.emplace_back(round);
    }
    report_.order.emplace_back();
  }

  bool is_at_an_analysis() const { return std::ranges::find(kAnalyses, report_.order.size()) != kAnalyses.end(); }
  const ComparisonReport& report() const { return report_; }
  std::vector<Difference> judged() const {
    std::vector<Series> rows;
    for (const ComparedRow& row : report_.rows) rows.push_back(throughput_series(row));
    return ratios(rows, {.analyses = report_.analyses});
  }

 private:
  ComparisonReport report_;
  std::vector<double> off_;
};

struct Ends {
  double differ = 0;  // part of the comparisons that end with a row that is called different
  double within = 0;  // with one that is called within the margin of the first
  double rounds = 0;  // in the mean
};

// Comparisons that end as --repeat=auto does, or once the time for so many rounds is over.
Ends ends_of(std::size_t rows, double factor, double deviation, double alike, std::size_t most = kAnalyses.back()) {
  constexpr int kComparisons = 800;
  Random random(11, 1);
  Ends ends;
  for (int i = 0; i < kComparisons; ++i) {
    Comparison comparison(rows);
    std::size_t rounds = 0;
    do {
      comparison.add_round(random, factor, deviation, alike);
    } while (++rounds < most && !(comparison.is_at_an_analysis() && is_settled(comparison.report(), kMargin)));
    bool differ = false, within = false;
    const std::vector<Difference> judged = comparison.judged();
    for (std::size_t row = 1; row < rows; ++row) {
      differ |= judged[row].verdict != Verdict::kNoDifferenceShown;
      within |= is_within(judged[row], kMargin);
    }
    ends.differ += differ / double{kComparisons};
    ends.within += within / double{kComparisons};
    ends.rounds += static_cast<double>(rounds) / kComparisons;
  }
  return ends;
}

TEST(EnoughRounds, OfEqualRowsClaimADifferenceInAtMostOneComparisonOfTwentyWithAllLooks) {
  for (const double alike : {0.0, 0.3, 0.7}) {
    for (const std::size_t rows : {2, 4}) {
      EXPECT_LE(ends_of(rows, 1, 0.05, alike).differ, 0.05) << rows << " rows, " << alike;
    }
    EXPECT_LE(ends_of(2, 1, 0.05, alike, 10).differ, 0.05) << "ended by time, " << alike;
  }
}

TEST(EnoughRounds, AreFewWhereTheDifferenceIsClear) {
  const Ends clear = ends_of(2, 1.1, 0.01, 0);
  EXPECT_GE(clear.differ, 0.99);
  EXPECT_LE(clear.rounds, 8);
  EXPECT_GE(ends_of(4, 1.1, 0.04, 0).differ, 0.9) << "more rounds, where there is more noise";
}

TEST(EnoughRounds, AreFewWhereNoDifferenceMatters) {
  const Ends equal = ends_of(2, 1, 0.005, 0);
  EXPECT_GE(equal.within, 0.9);
  EXPECT_LE(equal.rounds, 18);
}

TEST(EnoughRounds, CallARowThatIsBeyondTheMarginWithinItInAtMostOneComparisonOfTwenty) {
  for (const double alike : {0.0, 0.7}) EXPECT_LE(ends_of(2, 1.021, 0.01, alike).within, 0.05) << alike;
}

TEST(EnoughRounds, AreNotHadBeforeVerdictsBegin) {
  Random random(1);
  Comparison comparison(2);
  for (std::size_t round = 0; round + 1 < kFewestRounds; ++round) comparison.add_round(random, 2, 0.001, 0);
  EXPECT_FALSE(is_settled(comparison.report(), kMargin));
  comparison.add_round(random, 2, 0.001, 0);
  EXPECT_TRUE(is_settled(comparison.report(), kMargin));
}

}  // namespace
}  // namespace syncopate::experiments
