// SampleCosts: how much computing a sample takes, as a multiple of the mean. Samples of unequal length, such as texts,
// do not cost the same. Pure: a sample's cost follows from the run's seed and its number in the training set, so that
// it is the same in every mode, in every epoch and on every worker.
//
// The text form:
//
//   zipf[:EXPONENT]    lengths from 1 to 1024, of which length l is as frequent as l^-EXPONENT (usual: 1), as a density
//   lognormal:SIGMA    lengths whose logarithms are normally distributed, with this standard deviation
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate::worker {

class SampleCosts {
 public:
  // Parses a text; an empty one means that all samples cost the same. An error says what is wrong and what would be
  // right.
  static Result<SampleCosts> parse(std::string_view text);
  // The forms that parse reads, as help and its errors show them.
  static std::string forms();
  // In the form that parse reads.
  std::string to_string() const;

  bool are_equal() const { return kind_ == Kind::kEqual; }
  // The cost of sample `sample`, above 0. Its expectation over the samples is 1.
  double of(std::uint64_t seed, std::int64_t sample) const;

 private:
  enum class Kind { kEqual, kZipf, kLognormal };

  Kind kind_ = Kind::kEqual;
  double parameter_ = 0;  // the exponent, or sigma
};

}  // namespace syncopate::worker
