#include "worker/data/ratings_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "common/random.h"

namespace syncopate::worker {
namespace {

// Streams of the random generator, apart from those of weights and order.
constexpr std::uint64_t kNegativesOfTraining = 0x6E6567ull << 40;
constexpr std::uint64_t kNegativesOfTest = 0x746573ull << 40;
constexpr std::uint64_t kStreamsAnEpoch = 1ull << 32;  // more than there are samples

// One of `items` items that is free, each as likely. There is one. Who has rated nearly all of them gets the next that
// is free behind the last draw: to go on drawing could take for ever.
template <typename IsFree>
int draw_free(int items, Random& random, IsFree&& is_free) {
  constexpr int kMostDraws = 1000;
  int item = 0;
  for (int i = 0; i < kMostDraws; ++i) {
    item = static_cast<int>(random.below(static_cast<std::uint64_t>(items)));
    if (is_free(item)) return item;
  }
  while (!is_free(item)) item = (item + 1) % items;
  return item;
}

void write(const SampleRoom& to, int user, int item, bool positive) {
  to.ids[0] = user;
  to.ids[1] = item;
  to.labels[0] = positive ? 1 : 0;
}

// What each user has rated, but for what is left out.
struct History {
  SampleForm form;
  std::vector<std::size_t> begins;  // by user, and an end: where the user's part of items begins
  std::vector<int> users;           // of each rating
  std::vector<int> items;           // ascending within a user

  bool has_rated(int user, int item) const {
    const auto u = static_cast<std::size_t>(user);
    return std::ranges::binary_search(std::span(items).subspan(begins[u], begins[u + 1] - begins[u]), item);
  }
  int item_count() const { return static_cast<int>(form.ids[1].range); }
};

class TrainingRatings final : public Dataset {
 public:
  TrainingRatings(History history, std::uint64_t seed) : history_(std::move(history)), seed_(seed) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(history_.items.size()) * (1 + kNegatives); }
  const SampleForm& form() const override { return history_.form; }
  Judgement judgement() const override { return Judgement::kRanking; }

  void read(std::int64_t index, std::int64_t epoch, const SampleRoom& to) const override {
    const auto rating = static_cast<std::size_t>(index / (1 + kNegatives));
    const int user = history_.users[rating];
    if (index % (1 + kNegatives) == 0) return write(to, user, history_.items[rating], true);
    Random random(seed_, kNegativesOfTraining + static_cast<std::uint64_t>(epoch) * kStreamsAnEpoch +
                             static_cast<std::uint64_t>(index));
    // Nobody has rated everything (make_ratings).
    const auto is_free = [&](int item) { return !history_.has_rated(user, item); };
    write(to, user, draw_free(history_.item_count(), random, is_free), false);
  }

 private:
  History history_;
  std::uint64_t seed_;
};

class TestRatings final : public Dataset {
 public:
  TestRatings(SampleForm form, std::vector<int> users, std::vector<int> items)
      : form_(std::move(form)), users_(std::move(users)), items_(std::move(items)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(items_.size()); }
  const SampleForm& form() const override { return form_; }
  Judgement judgement() const override { return Judgement::kRanking; }

  void read(std::int64_t index, std::int64_t /*epoch*/, const SampleRoom& to) const override {
    const auto i = static_cast<std::size_t>(index);
    write(to, users_[i / kRankedItems], items_[i], i % kRankedItems == 0);
  }

 private:
  SampleForm form_;
  std::vector<int> users_;  // of each group
  std::vector<int> items_;  // group by group
};

// By user the index of the latest rating.
std::vector<std::size_t> latest_ratings(const RatingTable& table) {
  std::vector<std::size_t> latest(static_cast<std::size_t>(table.users), table.ratings.size());
  for (std::size_t i = 0; i < table.ratings.size(); ++i) {
    std::size_t& best = latest[static_cast<std::size_t>(table.ratings[i].user)];
    if (best == table.ratings.size() || table.ratings[i].time >= table.ratings[best].time) best = i;
  }
  return latest;
}

std::vector<int> counts_by_user(const RatingTable& table) {
  std::vector<int> counts(static_cast<std::size_t>(table.users));
  for (const Rating& rating : table.ratings) ++counts[static_cast<std::size_t>(rating.user)];
  return counts;
}

History history_of(const RatingTable& table, const std::vector<bool>& left_out) {
  std::vector<std::pair<int, int>> pairs;
  pairs.reserve(table.ratings.size());
  for (std::size_t i = 0; i < table.ratings.size(); ++i) {
    if (!left_out[i]) pairs.emplace_back(table.ratings[i].user, table.ratings[i].item);
  }
  std::ranges::sort(pairs);
  History history{.form = form_of_ratings(table.users, table.items), .begins = {}, .users = {}, .items = {}};
  for (const auto& [user, item] : pairs) {
    while (history.begins.size() <= static_cast<std::size_t>(user)) history.begins.push_back(history.items.size());
    history.users.push_back(user);
    history.items.push_back(item);
  }
  history.begins.resize(static_cast<std::size_t>(table.users) + 1, history.items.size());
  return history;
}

// Appends the positive and what it is to be told from.
void append_group(const History& history, int user, int positive, std::uint64_t seed, std::vector<int>& items) {
  const std::size_t begin = items.size();
  items.push_back(positive);
  Random random(seed, kNegativesOfTest + static_cast<std::uint64_t>(user));
  const auto is_free = [&](int item) {
    const bool chosen = std::find(items.begin() + static_cast<std::ptrdiff_t>(begin), items.end(), item) != items.end();
    return !chosen && !history.has_rated(user, item);
  };
  while (items.size() < begin + kRankedItems) items.push_back(draw_free(history.item_count(), random, is_free));
}

// Who can be tested.
std::vector<int> testable_users(const RatingTable& table) {
  const std::vector<int> counts = counts_by_user(table);
  std::vector<int> users;
  for (int user = 0; user < table.users; ++user) {
    const int count = counts[static_cast<std::size_t>(user)];
    if (count >= 2 && table.items - count >= kRankedItems - 1) users.push_back(user);
  }
  return users;
}

}  // namespace

SampleForm form_of_ratings(std::int64_t users, std::int64_t items) {
  return {.image = {},
          .classes = 2,
          .ids = {{.name = "user", .columns = 1, .range = users}, {.name = "item", .columns = 1, .range = items}},
          .labels = 1};
}

Result<DatasetPair> make_ratings(const RatingTable& table, std::uint64_t seed) {
  const std::vector<int> testable = testable_users(table);
  const std::vector<int> counts = counts_by_user(table);
  if (testable.empty() || std::ranges::max(counts) >= table.items) {
    return Status::data_loss(
        fmt::format("{} users rate {} items, up to {} of them each; expected users with 2 ratings or more and "
                    "{} items or more that they have not rated",
                    table.users, table.items, std::ranges::max(counts), kRankedItems - 1));
  }
  const std::vector<std::size_t> latest = latest_ratings(table);
  std::vector<bool> left_out(table.ratings.size());
  for (int user : testable) left_out[latest[static_cast<std::size_t>(user)]] = true;
  History history = history_of(table, left_out);

  const std::size_t tested = std::min<std::size_t>(testable.size(), kMostTestedUsers);
  std::vector<int> users, items;
  for (std::size_t i = 0; i < tested; ++i) {
    users.push_back(testable[i * testable.size() / tested]);
    const std::size_t rating = latest[static_cast<std::size_t>(users.back())];
    append_group(history, users.back(), table.ratings[rating].item, seed, items);
  }
  auto test = std::make_unique<TestRatings>(history.form, std::move(users), std::move(items));
  return DatasetPair{std::make_unique<TrainingRatings>(std::move(history), seed), std::move(test)};
}

}  // namespace syncopate::worker
