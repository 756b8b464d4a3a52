#include "worker/data/grammar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "worker/data/text_form.h"

namespace syncopate::worker {
namespace {

constexpr int kBracketKinds = 4;

struct GrammarSample {
  std::vector<int> ids, labels;
};

GrammarSample read(const Dataset& data, std::int64_t index) {
  const auto context = static_cast<std::size_t>(data.form().labels);
  GrammarSample sample{std::vector<int>(context), std::vector<int>(context)};
  data.read(index, 0, {{}, sample.ids, sample.labels});
  return sample;
}

TEST(Grammar, StringsCloseWhatWasOpenedLastAndNestNoDeeperThanTheyMay) {
  int deepest = 0, outside = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    BracketString string(3, number);
    std::vector<int> open;
    for (int i = 0; i < 100; ++i) {
      const int character = string.next();
      if (character < kBracketKinds) {
        open.push_back(character);
      } else {
        ASSERT_FALSE(open.empty());
        ASSERT_EQ(character - kBracketKinds, open.back());
        open.pop_back();
      }
      ASSERT_LE(open.size(), static_cast<std::size_t>(kDeepest));
      deepest += open.size() == kDeepest ? 1 : 0;
      outside += open.empty() ? 1 : 0;
    }
  }
  EXPECT_GT(deepest, 0);
  EXPECT_GT(outside, 0);
}

TEST(Grammar, OfAnyVocabularyUsesAllOfItsCharactersButAnOddOne) {
  for (const int vocabulary : {2, 9, 501}) {
    const auto data = make_grammar_train(1, {.train = 20, .test = 1}, 2000, vocabulary);
    EXPECT_EQ(data->form().classes, vocabulary);
    std::set<int> seen;
    for (int index = 0; index < 20; ++index) {
      const GrammarSample sample = read(*data, index);
      seen.insert(sample.ids.begin(), sample.ids.end());
    }
    EXPECT_EQ(seen.size(), vocabulary / 2 * 2u);
    EXPECT_EQ(*seen.rbegin(), vocabulary / 2 * 2 - 1);
    EXPECT_EQ(data->best_loss(), entropy_of_brackets(2000, vocabulary / 2));
  }
  // What is opened is all that more kinds make harder to foresee.
  EXPECT_NEAR(entropy_of_brackets(1, 500) - entropy_of_brackets(1, 4), 0.5 * std::log(500 / 4.0), 1e-12);
}

TEST(Grammar, SamplesFollowFromSeedAndIndexAndLabelsAreTheNextTokens) {
  const auto data = make_grammar_train(1, {.train = 10, .test = 10}, 16);
  const auto test = make_grammar_test(1, {.train = 10, .test = 10}, 16);
  EXPECT_EQ(data->size(), 10);
  EXPECT_TRUE(is_text(data->form()));
  const GrammarSample sample = read(*data, 4);
  EXPECT_EQ(sample.ids, read(*make_grammar_train(1, {.train = 99, .test = 1}, 16), 4).ids);
  EXPECT_NE(sample.ids, read(*data, 5).ids);
  EXPECT_NE(sample.ids, read(*make_grammar_train(2, {.train = 10, .test = 10}, 16), 4).ids);
  EXPECT_NE(sample.ids, read(*test, 4).ids);
  EXPECT_TRUE(std::equal(sample.ids.begin() + 1, sample.ids.end(), sample.labels.begin()));
}

// The probabilities of 20,000 strings are known: -ln of them comes to the entropy within the noise of so many.
TEST(Grammar, EntropyIsWhatItsStringsTakeToWrite) {
  constexpr int kContext = 40, kStrings = 20000;
  double sum = 0;
  for (std::uint64_t number = 0; number < kStrings; ++number) {
    BracketString string(7, number);
    int depth = string.next() < kBracketKinds ? 1 : 0;
    for (int i = 0; i < kContext; ++i) {
      const bool opens = string.next() < kBracketKinds;
      if (depth > 0 && depth < kDeepest) sum -= std::log(opens ? kOpen : 1 - kOpen);
      if (opens) sum += std::log(kBracketKinds);
      depth += opens ? 1 : -1;
    }
  }
  EXPECT_NEAR(sum / (kStrings * kContext), entropy_of_brackets(kContext), 0.002);
  EXPECT_DOUBLE_EQ(make_grammar_train(1, {.train = 1, .test = 1}, kContext)->best_loss().value(),
                   entropy_of_brackets(kContext));
}

TEST(Grammar, EntropyOfLongStringsTendsToTheRate) {
  EXPECT_NEAR(entropy_of_brackets(1), std::log(2.0) + 0.5 * std::log(kBracketKinds), 1e-12);
  EXPECT_NEAR(entropy_of_brackets(1000000), entropy_rate_of_brackets(), 1e-5);
  EXPECT_GT(std::abs(entropy_of_brackets(8) - entropy_rate_of_brackets()), 1e-3);
}

// What the last character alone tells: the least loss of a bigram model.
TEST(Grammar, IsNotKnownFromTheLastCharacterAlone) {
  std::map<std::pair<int, int>, double> pairs;
  std::map<int, double> firsts;
  double total = 0;
  for (std::uint64_t number = 0; number < 5000; ++number) {
    BracketString string(7, number);
    int last = string.next();
    for (int i = 0; i < 64; ++i, ++total) {
      const int next = string.next();
      ++pairs[{last, next}];
      ++firsts[last];
      last = next;
    }
  }
  double bigram = 0;
  for (const auto& [pair, count] : pairs) bigram -= count * std::log(count / firsts[pair.first]) / total;
  EXPECT_GT(bigram, entropy_of_brackets(64) + 0.3);
}

}  // namespace
}  // namespace syncopate::worker
