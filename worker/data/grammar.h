// A grammar: strings of nested brackets of several kinds, drawn by a process whose entropy is known exactly, so that it
// can be said how much of it a model has learnt.
//
// Outside of all brackets the next character opens one. Where kDeepest are open, it closes the last of them. Elsewhere
// it opens one with probability kOpen, else closes the last. Each kind is as likely to be opened. Which kind closes was
// decided where it was opened, which may be far back: the state is the stack of open brackets, a function of all that
// came before, and who knows the last characters alone does not know it.
//
// So the entropy of the next character follows from the depth d, the number of open brackets:
//   h(0) = ln kKinds,  h(d) = H(kOpen) + kOpen ln kKinds,  h(kDeepest) = 0   nats,  H(p) = -p ln p - (1-p) ln(1-p),
// and that of a string from how often each depth occurs, which is a random walk between two walls. In the long run its
// entropy rate is the mean of h over the walk's stationary distribution (Cover and Thomas 2006, theorem 4.2.1):
//   pi(1) = pi(0) / q,  pi(d+1) = pi(d) p/q,  pi(kDeepest) = p pi(kDeepest - 1),   p = kOpen, q = 1-p.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "common/random.h"
#include "worker/data/dataset.h"

namespace syncopate::worker {

inline constexpr int kBracketKinds = 4;
inline constexpr int kDeepest = 6;
inline constexpr double kOpen = 0.5;
// Characters: kind k opens as k, and closes as kBracketKinds + k.
inline constexpr int kGrammarCharacters = 2 * kBracketKinds;

// The characters of one string, which follows from seed and number alone.
class BracketString {
 public:
  BracketString(std::uint64_t seed, std::uint64_t number) : random_(seed, number) {}

  int next();

 private:
  Random random_;
  std::array<int, kDeepest> open_{};  // kinds, the outermost first
  int depth_ = 0;
};

// Of the characters behind the first one, `context` of them, given all that came before each: the mean, in nats.
double entropy_of_brackets(int context);
// Its limit for long strings.
double entropy_rate_of_brackets();

struct GrammarCounts {
  std::int64_t train = 0;
  std::int64_t test = 0;
};

// Samples are the first context + 1 characters of a string each: all but the last are tokens, all but the first labels.
// Drawn as they are read, and kept nowhere.
SampleForm form_of_grammar(int context);
std::unique_ptr<Dataset> make_grammar_train(std::uint64_t seed, const GrammarCounts& counts, int context);
std::unique_ptr<Dataset> make_grammar_test(std::uint64_t seed, const GrammarCounts& counts, int context);

}  // namespace syncopate::worker
