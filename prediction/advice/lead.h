// Which of two ways is ahead, as far as predictions with an error can tell, and over which values of a quantity. Pure.
#pragma once

#include <functional>
#include <vector>

namespace syncopate::prediction {

enum class Lead { kFirst, kNeither, kSecond };

// Two scores, of which less is better, above 0, and how far reality may lie from each, as fractions from 0 to below 1.
struct Scores {
  double first = 0;
  double second = 0;
};
struct Errors {
  double first = 0;
  double second = 0;
};

// Returns who is ahead even if the prediction of each is wrong by its error, each to its disadvantage: an error e means
// that prediction / measurement lies from 1 - e to 1 + e.
Lead lead(const Scores& scores, const Errors& errors);

// A stretch of a quantity over which the lead is the same.
struct Stretch {
  double from = 0;
  double to = 0;
  Lead lead = Lead::kNeither;
};

// Returns the stretches of [low, high], in order, each beginning where the one before it ends. `scores_at` is asked at
// points 1.1 times apart, so that a shorter stretch may be missed; their ends are then found by halving to within a
// millionth. 0 < low < high.
std::vector<Stretch> stretches(const std::function<Scores(double)>& scores_at, double low, double high,
                               const Errors& errors);

// Returns the same for whole numbers, which are asked at `asked`, in rising order and at least one, and by halving
// between two of these where the lead differs. A stretch holds both of its ends, and the next one begins one above.
std::vector<Stretch> whole_stretches(const std::function<Scores(int)>& scores_at, const std::vector<int>& asked,
                                     const Errors& errors);

}  // namespace syncopate::prediction
