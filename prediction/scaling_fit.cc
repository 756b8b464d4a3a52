#include "prediction/scaling_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "common/random.h"

namespace syncopate::prediction {
namespace {

constexpr double kNoise = 0.02;   // of a measured step, as a standard deviation of its logarithm
constexpr double kGrowth = 0.03;  // of a predicted one, for each doubling beyond what was measured

using Values = std::array<double, kUnknowns>;  // by Unknown

double value_of(const Values& values, Unknown unknown) { return values[static_cast<std::size_t>(unknown)]; }

// Where an unknown lies before anything is measured: its logarithm is normal, or that of the odds if it is a share.
struct Prior {
  double median = 1;  // of C: of the nominal step
  double deviation = 0;
  bool is_share = false;

  double at(double deviations) const {
    const double off = std::exp(deviation * deviations);
    return is_share ? median * off / (1 - median + median * off) : median * off;
  }
};

constexpr std::array<Prior, kUnknowns> kPriors = {{{.deviation = 0.1},
                                                   {.median = 0.02, .deviation = 1.2},
                                                   {.median = 0.01, .deviation = 1},
                                                   {.median = 0.62, .deviation = 1.5, .is_share = true},
                                                   {.median = 0.73, .deviation = 1.5, .is_share = true},
                                                   {.median = 0.1, .deviation = 1}}};

// How far the slowest of n standard normal values lies above their mean (Blom, "Statistical Estimates and Transformed
// Beta-Variables", 1958).
double slowest_of(int n) {
  if (n < 2) return 0;
  const double quantile = (n - 0.375) / (n + 0.25);
  double low = 0, high = 10;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < quantile ? low : high) = middle;
  }
  return low;
}

// A number of workers, and what an exchange among them exposes at each share of the link's rate: with all that can
// beside computation, and with nothing. predict_step() is asked once for each of a row of shares.
class Size {
 public:
  static Result<Size> of(const ModelProfile& profile, double compute, Network network, ExchangePlan plan) {
    Size size;
    size.workers_ = network.workers;
    size.hosts_ = network.hosts();
    size.slowest_ = slowest_of(network.workers);
    const double rate = network.bytes_per_second;
    const bool overlaps = plan.overlap;
    for (std::size_t i = 0; i < kShares; ++i) {
      network.bytes_per_second = rate * std::exp(-kShareStep * static_cast<double>(i));
      for (auto& [overlap, exposed] : {std::pair(false, &size.apart_), std::pair(overlaps, &size.beside_)}) {
        plan.overlap = overlap;
        SYNCOPATE_ASSIGN_OR_RETURN(const StepPrediction step, predict_step(profile, compute, network, plan));
        (*exposed)[i] = step.step - compute;
      }
    }
    return size;
  }

  double step(const Values& values) const {
    const double alone = value_of(values, Unknown::kAlone);
    if (workers_ == 1 && apart_.back() == 0) return alone;
    const double share = value_of(values, Unknown::kLinkShare) * std::pow(hosts_, -value_of(values, Unknown::kDecline));
    const double hidden = value_of(values, Unknown::kHidden);
    return alone * (1 + value_of(values, Unknown::kFixed) + value_of(values, Unknown::kJitter) * slowest_) +
           hidden * exposed(beside_, share) + (1 - hidden) * exposed(apart_, share);
  }

 private:
  static constexpr std::size_t kShares = 64;
  static constexpr double kShareStep = 0.1;  // of the share's logarithm: down to two thousandths of the rate
  using ByShare = std::array<double, kShares>;

  static double exposed(const ByShare& exposed, double share) {
    const double place = std::clamp(-std::log(share) / kShareStep, 0.0, kShares - 1.001);
    const auto i = static_cast<std::size_t>(place);
    return std::lerp(exposed[i], exposed[i + 1], place - static_cast<double>(i));
  }

  int workers_ = 1;
  int hosts_ = 1;
  double slowest_ = 0;
  ByShare apart_{}, beside_{};
};

FittedValue fitted(std::vector<double> values) {
  std::ranges::sort(values);
  const auto at = [&](double part) { return values[static_cast<std::size_t>(part * double(values.size()))]; };
  return {.median = at(0.5), .low = at(0.05), .high = at(0.95)};
}

// Walkers over what makes steps likely, in deviations from the priors' medians.
class Walk {
 public:
  Walk(double compute, std::vector<std::pair<Size, double>> measured)
      : compute_(compute), measured_(std::move(measured)) {
    for (Walker& walker : walkers_) {
      for (double& one : walker.place) one = random_.normal();
      walker.likelihood = likelihood(walker.place);
    }
  }

  // Half of the walkers move along lines to one of the others each.
  void move() {
    for (std::size_t i = 0; i < kWalkers; ++i) {
      Walker& walker = walkers_[i];
      const Walker& other = walkers_[(i < kWalkers / 2 ? kWalkers / 2 : 0) + random_.below(kWalkers / 2)];
      const double root = random_.uniform(1, kStretch), stretch = root * root / kStretch;
      Walker next;
      std::ranges::transform(walker.place, other.place, next.place.begin(),
                             [&](double own, double its) { return its + stretch * (own - its); });
      next.likelihood = likelihood(next.place);
      const double accepted = (kUnknowns - 1) * std::log(stretch) + next.likelihood - walker.likelihood;
      if (std::log(1 - random_.uniform()) < accepted) walker = next;
    }
  }

  void add_to(std::vector<Values>& draws) const {
    for (const Walker& walker : walkers_) draws.push_back(values_at(walker.place));
  }

 private:
  static constexpr std::size_t kWalkers = 40;
  static constexpr double kStretch = 2;

  struct Walker {
    Values place{};
    double likelihood = 0;  // its logarithm
  };

  Values values_at(const Values& place) const {
    Values values;
    for (std::size_t i = 0; i < kUnknowns; ++i) values[i] = kPriors[i].at(place[i]);
    values[static_cast<std::size_t>(Unknown::kAlone)] *= compute_;
    return values;
  }

  double likelihood(const Values& place) const {
    double squares = 0;
    for (const double one : place) squares += one * one;
    const Values values = values_at(place);
    for (const auto& [size, seconds] : measured_) {
      const double off = std::log(size.step(values) / seconds) / kNoise;
      squares += off * off;
    }
    return -squares / 2;
  }

  double compute_;
  std::vector<std::pair<Size, double>> measured_;
  Random random_{1};
  std::array<Walker, kWalkers> walkers_;
};

}  // namespace

Result<ScalingFit> ScalingFit::of(const ModelProfile& profile, double compute, std::span<const MeasuredStep> measured) {
  constexpr int kForgotten = 500, kMoves = 1500, kKept = 10;  // one in so many is kept: others are much like it
  if (measured.empty()) return Status::invalid_argument("a fit needs a measured step at least");
  ScalingFit fit(profile, compute);
  std::vector<std::pair<Size, double>> sizes;
  for (const MeasuredStep& step : measured) {
    SYNCOPATE_ASSIGN_OR_RETURN(Size size, Size::of(profile, compute, step.network, step.plan));
    sizes.emplace_back(std::move(size), step.seconds);
    fit.sizes_.push_back(step.network.workers);
  }
  Walk walk(compute, std::move(sizes));
  for (int move = 0; move < kMoves; ++move) {
    walk.move();
    if (move >= kForgotten && move % kKept == 0) walk.add_to(fit.draws_);
  }
  return fit;
}

Result<FittedValue> ScalingFit::step(const Network& network, const ExchangePlan& plan) const {
  SYNCOPATE_ASSIGN_OR_RETURN(const Size size, Size::of(profile_, compute_, network, plan));
  double doublings = std::numeric_limits<double>::max();
  for (const int measured : sizes_) {
    doublings = std::min(doublings, std::abs(std::log2(static_cast<double>(network.workers) / measured)));
  }
  const double deviation = std::hypot(kNoise, kGrowth * doublings);
  Random random(2);
  std::vector<double> steps;
  for (const Values& draw : draws_) steps.push_back(size.step(draw) * std::exp(deviation * random.normal()));
  return fitted(std::move(steps));
}

FittedValue ScalingFit::prior(Unknown unknown) const {
  constexpr double kFivePercent = 1.645;  // deviations of a normal value beyond which so much lies
  const Prior& prior = kPriors[static_cast<std::size_t>(unknown)];
  const double scale = unknown == Unknown::kAlone ? compute_ : 1;
  return {
      .median = scale * prior.at(0), .low = scale * prior.at(-kFivePercent), .high = scale * prior.at(kFivePercent)};
}

FittedValue ScalingFit::value(Unknown unknown) const {
  std::vector<double> values;
  for (const Values& draw : draws_) values.push_back(value_of(draw, unknown));
  return fitted(std::move(values));
}

}  // namespace syncopate::prediction
