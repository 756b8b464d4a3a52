// How far the mean of successive rounds may lie from the true one, where rounds may be alike: a machine that is now
// slow, now fast for one configuration alone tells less by its rounds than as many independent ones do. Pure.
//
// Few values show badly how alike they are, and their autocorrelation, put too low, makes the interval too narrow.
// It is therefore not estimated: each autocorrelation from 0 to 0.95 counts by how likely it makes the values, in the
// first-order autoregression of which all are as likely before (Zellner and Tiao 1964, Bayesian analysis of the
// regression model with autocorrelated errors). The mean's distribution is the mixture of the Student distributions
// that they give. Values of other configurations in the same rounds count, too.
#pragma once

#include <span>
#include <vector>

namespace syncopate::experiments {

// What the values are of.
enum class Rounds {
  kMayBeAlike,   // times of a machine
  kIndependent,  // what seeds have drawn, one for each round
};

// The distribution of a mean about the true one: symmetric, a mixture of Student's.
class ErrorOfMean {
 public:
  // `values` are in the order in which they were measured, two or more. The mean has `freedom` degrees of freedom, and
  // the square of its error is `inflation` times that of the plain mean (1 unless values were trimmed).
  ErrorOfMean(std::span<const double> values, Rounds rounds, double inflation, int freedom);

  // Lets another configuration in the same rounds count by `part` of what its values say of how alike rounds are.
  void learn_from(const ErrorOfMean& other, double part);

  // Returns the probability that the mean lies so far from the true one, or farther: 1 for no distance, and 0 for any
  // other where values do not differ.
  double p(double distance) const;
  // Returns the distance of that probability, in (0, 1).
  double reach(double probability) const;
  // Returns the autocorrelation that makes all these values most likely, 0 to 0.95; 0 of independent ones.
  double autocorrelation() const { return autocorrelation_; }

 private:
  struct Part {
    double log_likelihood = 0;  // of its autocorrelation, from these values alone
    double error = 0;           // standard error
    double weight = 0;          // together they are 1
  };

  // Sets the weights to what log_likelihoods_ make them.
  void weigh();

  std::vector<Part> parts_;              // by autocorrelation; none: values do not differ
  std::vector<double> log_likelihoods_;  // with what others say
  int freedom_;
  double autocorrelation_ = 0;
};

}  // namespace syncopate::experiments
