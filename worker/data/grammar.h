// A grammar: strings of nested brackets of several kinds, drawn by a process whose entropy is known exactly, so that
// the entropy tells how much of it a model has learnt.
//
// Outside all brackets the next character opens one. If kDeepest are open, it closes the last of them. Otherwise it
// opens one with probability kOpen, and else closes the last. Each kind is equally likely to be opened. The kind that
// closes was chosen when it was opened, which may be far back: the state is the stack of open brackets, a function of
// all that came before, and the last few characters do not determine it.
//
// So the entropy of the next character follows from the depth d, the number of open brackets:
//   h(0) = ln K,  h(d) = H(kOpen) + kOpen ln K,  h(kDeepest) = 0   nats, of K kinds,  H(p) = -p ln p - (1-p) ln(1-p),
// and the entropy of a string follows from how often each depth occurs; the depth is a random walk between two walls.
// In the long run its entropy rate is the mean of h over the walk's stationary distribution (Cover and Thomas 2006,
// theorem 4.2.1):
//   pi(1) = pi(0) / q,  pi(d+1) = pi(d) p/q,  pi(kDeepest) = p pi(kDeepest - 1),   p = kOpen, q = 1-p.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "common/random.h"
#include "worker/data/dataset.h"

namespace syncopate::worker {

inline constexpr int kDeepest = 6;
inline constexpr double kOpen = 0.5;
// Characters: of K kinds, kind k opens as k, and closes as K + k.
inline constexpr int kUsualVocabulary = 8, kLargestVocabulary = 1 << 20;  // characters
// Returns how many kinds of brackets there are among so many characters, two or more. With an odd number of them the
// last one is in no string.
inline int bracket_kinds(int vocabulary) { return vocabulary / 2; }

// The characters of one string, which depend only on seed, number and kinds.
class BracketString {
 public:
  BracketString(std::uint64_t seed, std::uint64_t number, int kinds = bracket_kinds(kUsualVocabulary))
      : random_(seed, number), kinds_(kinds) {}

  int next();

 private:
  Random random_;
  int kinds_;
  std::array<int, kDeepest> open_{};  // kinds, the outermost first
  int depth_ = 0;
};

// Returns the mean entropy, in nats, of the `context` characters after the first one, each given all that came before
// it.
double entropy_of_brackets(int context, int kinds = bracket_kinds(kUsualVocabulary));
// Returns the limit of entropy_of_brackets for long strings.
double entropy_rate_of_brackets(int kinds = bracket_kinds(kUsualVocabulary));

struct GrammarCounts {
  std::int64_t train = 0;
  std::int64_t test = 0;
};

// A sample is the first context + 1 characters of a string of its own: all but the last are tokens, all but the first
// labels. Samples are drawn when they are read, and not stored.
SampleForm form_of_grammar(int context, int vocabulary = kUsualVocabulary);
std::unique_ptr<Dataset> make_grammar_train(std::uint64_t seed, const GrammarCounts& counts, int context,
                                            int vocabulary = kUsualVocabulary);
std::unique_ptr<Dataset> make_grammar_test(std::uint64_t seed, const GrammarCounts& counts, int context,
                                           int vocabulary = kUsualVocabulary);

}  // namespace syncopate::worker
