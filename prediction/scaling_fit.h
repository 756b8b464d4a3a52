// What steps that were measured at two or three sizes say of a job that its nominal figures cannot, and with that the
// steps at other sizes, each with an interval. Pure, and the same at every call.
//
// A step of n workers takes C (1 + f + j z(n)) + E, and one that exchanges nothing C:
//   f  what an exchange costs whatever its bytes, of C
//   j  how far steps of one worker differ, of C; z(n) is by how many such deviations the slowest of n lags behind
//   E  what step_prediction.h exposes of the exchange over h hosts, if a link achieves s h^-d of its nominal rate, and
//      the part o of what could hide beside computation does
// None of these is known. Each has the values that make what was measured likely, by Bayes' rule: before anything is
// measured, they lie where Unknown says, and a measured step may be off by noise. A predicted one may also be off by
// what grows with the number of workers and stands in no form.
//
// The values are drawn by walkers that stretch towards each other (Goodman and Weare, "Ensemble samplers with affine
// invariance", 2010, section 2), from a fixed seed.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "common/status.h"
#include "prediction/step_prediction.h"

namespace syncopate::prediction {

struct MeasuredStep {
  Network network;  // its rate is the nominal one
  ExchangePlan plan;
  double seconds = 0;  // above 0
};

// A value, and the ends between which it lies in nine of ten cases.
struct FittedValue {
  double median = 0;
  double low = 0;
  double high = 0;
};

// Beside each, where it lies in two of three cases before anything is measured.
enum class Unknown {
  kAlone,      // C, in seconds: within 10 % of the nominal step
  kFixed,      // f: 0.6 to 6.6 %
  kJitter,     // j: 0.4 to 2.7 %
  kLinkShare,  // s: 27 to 88 %
  kHidden,     // o: 38 to 92 %
  kDecline,    // d: 0.04 to 0.27
};
inline constexpr std::size_t kUnknowns = 6;

class ScalingFit {
 public:
  // `compute` is the nominal step of one worker alone, in seconds. Fails with invalid argument where predict_step()
  // does, and without a measured step.
  static Result<ScalingFit> of(const ModelProfile& profile, double compute, std::span<const MeasuredStep> measured);

  // The step at a size, in seconds. Fails where predict_step() does.
  Result<FittedValue> step(const Network& network, const ExchangePlan& plan) const;

  FittedValue value(Unknown unknown) const;
  FittedValue prior(Unknown unknown) const;  // before anything was measured

 private:
  using Values = std::array<double, kUnknowns>;  // by Unknown

  ScalingFit(ModelProfile profile, double compute) : profile_(std::move(profile)), compute_(compute) {}

  ModelProfile profile_;
  double compute_;
  std::vector<int> sizes_;  // that were measured
  std::vector<Values> draws_;
};

}  // namespace syncopate::prediction
