#include "worker/data/grammar.h"

#include <cmath>

#include "worker/data/text_form.h"

namespace syncopate::worker {
namespace {

// Strings of the test part have other numbers than those of any training part.
constexpr std::uint64_t kFirstTestNumber = std::uint64_t{1} << 40;

// By depth.
using Distribution = std::array<double, kDeepest + 1>;

double probability_to_open(int depth) { return depth == 0 ? 1 : depth == kDeepest ? 0 : kOpen; }

double mean_entropy(const Distribution& depths, int kinds) {
  const double choice = -kOpen * std::log(kOpen) - (1 - kOpen) * std::log(1 - kOpen);
  double mean = depths[0] * std::log(kinds);
  for (int d = 1; d < kDeepest; ++d) mean += depths[d] * (choice + kOpen * std::log(kinds));
  return mean;
}

Distribution one_character_later(const Distribution& depths) {
  Distribution later{};
  for (int d = 0; d <= kDeepest; ++d) {
    const double opens = probability_to_open(d);
    if (d < kDeepest) later[d + 1] += depths[d] * opens;
    if (d > 0) later[d - 1] += depths[d] * (1 - opens);
  }
  return later;
}

class Grammar final : public Dataset {
 public:
  Grammar(std::uint64_t seed, std::uint64_t first, std::int64_t size, int context, int vocabulary)
      : seed_(seed), first_(first), size_(size), form_(form_of_grammar(context, vocabulary)) {}

  std::int64_t size() const override { return size_; }
  const SampleForm& form() const override { return form_; }

  void read(std::int64_t index, std::int64_t /*epoch*/, const SampleRoom& to) const override {
    BracketString string(seed_, first_ + static_cast<std::uint64_t>(index), bracket_kinds(form_.classes));
    int character = string.next();
    for (std::size_t i = 0; i < to.ids.size(); ++i) {
      to.ids[i] = character;
      to.labels[i] = character = string.next();
    }
  }

  std::optional<double> best_loss() const override {
    return entropy_of_brackets(form_.labels, bracket_kinds(form_.classes));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t first_;  // number of sample 0
  std::int64_t size_;
  SampleForm form_;
};

}  // namespace

int BracketString::next() {
  const bool opens = depth_ == 0 || (depth_ < kDeepest && random_.uniform() < kOpen);
  if (opens) return open_[depth_++] = static_cast<int>(random_.below(static_cast<std::uint64_t>(kinds_)));
  return kinds_ + open_[--depth_];
}

double entropy_of_brackets(int context, int kinds) {
  Distribution depths{};
  depths[1] = 1;  // behind the first character
  double sum = 0;
  for (int i = 0; i < context; ++i) {
    sum += mean_entropy(depths, kinds);
    depths = one_character_later(depths);
  }
  return sum / context;
}

double entropy_rate_of_brackets(int kinds) {
  Distribution depths{1, 1 / (1 - kOpen)};
  for (int d = 1; d + 1 < kDeepest; ++d) depths[d + 1] = depths[d] * kOpen / (1 - kOpen);
  depths[kDeepest] = depths[kDeepest - 1] * kOpen;
  double sum = 0;
  for (const double weight : depths) sum += weight;
  return mean_entropy(depths, kinds) / sum;
}

SampleForm form_of_grammar(int context, int vocabulary) { return form_of_text(context, vocabulary); }

std::unique_ptr<Dataset> make_grammar_train(std::uint64_t seed, const GrammarCounts& counts, int context,
                                            int vocabulary) {
  return std::make_unique<Grammar>(seed, 0, counts.train, context, vocabulary);
}

std::unique_ptr<Dataset> make_grammar_test(std::uint64_t seed, const GrammarCounts& counts, int context,
                                           int vocabulary) {
  return std::make_unique<Grammar>(seed, kFirstTestNumber, counts.test, context, vocabulary);
}

}  // namespace syncopate::worker
