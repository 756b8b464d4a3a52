#include "experiments/lab/compare/rounds_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/enough_rounds.h"

namespace syncopate::experiments {
namespace {

// Rounds after which a simulation shows whether it draws anything.
constexpr std::size_t kToBeExact = 2;

// Returns a limit that so much time fits into, with some to spare.
double roomy(double needed) { return 10 * std::ceil(1.2 * needed / 10); }

}  // namespace

RoundsEnd::RoundsEnd(const AutoRounds& rounds, const Clock& clock, TimePoint begin)
    : asked_(rounds),
      clock_(clock),
      begin_(begin),
      deadline_(rounds.seconds ? std::optional(begin + from_seconds(*rounds.seconds)) : std::nullopt),
      round_begin_(clock.now()) {}

std::string RoundsEnd::announcement() const {
  return fmt::format("rounds until the verdict is clear{}",
                     asked_.seconds ? fmt::format(", {:g} s in all at most (--repeat-limit)", *asked_.seconds) : "");
}

std::size_t RoundsEnd::surely(std::size_t rounds, bool is_certain) {
  if (is_certain) return rounds + 1;
  return rounds < kToBeExact ? kToBeExact
                             : *std::ranges::upper_bound(kAnalyses, std::min(rounds, kAnalyses.back() - 1));
}

bool RoundsEnd::is_enough(const ComparisonReport& report, std::size_t rounds) {
  const TimePoint now = clock_.now();
  longest_ = std::max(longest_, now - round_begin_);
  round_begin_ = now;
  if (figures_of(report).is_exact) {
    why_ = "this simulation draws nothing that moves its times";
  } else if (std::ranges::find(kAnalyses, rounds) != kAnalyses.end() && is_settled(report, asked_.margin)) {
    why_ = fmt::format("each row is told from the first and from the fastest, or within {:g} % of it",
                       100 * asked_.margin);
  } else if (rounds == kAnalyses.back()) {
    why_ = "the most that there are";
  } else if (deadline_ && now + longest_ > *deadline_) {
    const double spent = seconds(now - begin_);
    why_ = fmt::format("after {:.0f} s, since another could end after the {:g} s of --repeat-limit", spent,
                       *asked_.seconds);
    if (rounds < kFewestRounds) {
      why_ += fmt::format("; verdicts begin at {}, for which --repeat-limit={:.0f}s has time", kFewestRounds,
                          roomy(spent + seconds(longest_) * static_cast<double>(kFewestRounds - rounds)));
    }
  }
  return !why_.empty();
}

std::string RoundsEnd::reason(std::size_t rounds) const {
  return fmt::format("--repeat=auto: {} round{}: {}", rounds, rounds == 1 ? "" : "s", why_);
}

}  // namespace syncopate::experiments
