// Student's t distribution, of a whole number of degrees of freedom. Pure.
#pragma once

namespace syncopate::experiments {

// P(|T| >= |t|): how often so large a value comes by chance. Abramowitz and Stegun, Handbook of Mathematical Functions,
// 26.7.3 and 26.7.4. `freedom` is 1 or more.
double two_sided_p(double t, int freedom);

// The t that is exceeded, to both sides together, with probability `p`, in (0, 1): two_sided_p(t, freedom) == p.
double two_sided_quantile(double p, int freedom);

}  // namespace syncopate::experiments
