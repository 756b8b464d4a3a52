// Student's t distribution with an integer number of degrees of freedom. Pure.
#pragma once

namespace syncopate::experiments {

// Returns P(|T| >= |t|), the probability of a value that large by chance. Abramowitz and Stegun, Handbook of
// Mathematical Functions, 26.7.3 and 26.7.4. `freedom` is 1 or more.
double two_sided_p(double t, int freedom);

// Returns the t that |T| exceeds with probability `p`, in (0, 1): two_sided_p(t, freedom) == p.
double two_sided_quantile(double p, int freedom);

}  // namespace syncopate::experiments
