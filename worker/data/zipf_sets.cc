#include "worker/data/zipf_sets.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "worker/data/clicks_reader.h"
#include "worker/data/ratings_dataset.h"

namespace syncopate::worker {
namespace {

// Streams of the random generator: samples by their index, hidden numbers by the row's.
constexpr std::uint64_t kTrainingStream = 1ull << 56;
constexpr std::uint64_t kTestStream = 2ull << 56;
constexpr std::uint64_t kUserStream = 3ull << 56;
constexpr std::uint64_t kItemStream = 4ull << 56;
constexpr std::uint64_t kEffectStream = 5ull << 56;

constexpr int kFactors = 4;
constexpr double kFactorWeight = 3.0;
constexpr double kEffect = 0.8;       // of a row, at most
constexpr double kValueEffect = 0.2;  // of a value's distance from the middle, at most
constexpr double kLargestValue = 4.0;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double entropy(double p) { return p <= 0 || p >= 1 ? 0 : -(p * std::log(p) + (1 - p) * std::log1p(-p)); }

// Spreads 0 .. count-1 over themselves, each once.
class Scatter {
 public:
  explicit Scatter(std::int64_t count) : count_(static_cast<std::uint64_t>(count)) {
    stride_ = static_cast<std::uint64_t>(0.6180339887 * static_cast<double>(count)) | 1;
    while (std::gcd(stride_, count_) != 1) ++stride_;
  }
  std::uint64_t operator()(std::int64_t rank, std::uint64_t offset = 0) const {
    return (static_cast<std::uint64_t>(rank) * stride_ + offset) % count_;
  }

 private:
  std::uint64_t count_, stride_;
};

class ZipfRatings {
 public:
  ZipfRatings(std::int64_t rows, std::uint64_t seed)
      : rows_(rows), seed_(seed), scatter_(rows), form_(form_of_ratings(rows, rows)) {}

  const SampleForm& form() const { return form_; }

  // Writes what is known of a sample; returns the probability of label 1.
  double draw(Random& random, const SampleRoom& to) const {
    const std::uint64_t user = scatter_(zipf_rank(random, rows_)), item = scatter_(zipf_rank(random, rows_));
    to.ids[0] = static_cast<int>(user);
    to.ids[1] = static_cast<int>(item);
    Random of_user(seed_, kUserStream + user), of_item(seed_, kItemStream + item);
    double log_odds = of_item.uniform(-1, 1);
    for (int i = 0; i < kFactors; ++i) log_odds += kFactorWeight * of_user.uniform(-1, 1) * of_item.uniform(-1, 1);
    return sigmoid(log_odds);
  }

 private:
  std::int64_t rows_;
  std::uint64_t seed_;
  Scatter scatter_;
  SampleForm form_;
};

class ZipfClicks {
 public:
  ZipfClicks(std::int64_t rows, std::uint64_t seed)
      : rows_(rows), seed_(seed), scatter_(rows), form_(form_of_clicks(rows)) {}

  const SampleForm& form() const { return form_; }

  double draw(Random& random, const SampleRoom& to) const {
    double log_odds = 0;
    for (int i = 0; i < kClickNumbers; ++i) {
      const double value = random.uniform(0, kLargestValue);
      to.values[static_cast<std::size_t>(i)] = static_cast<float>(value);
      log_odds += effect(static_cast<std::uint64_t>(rows_ + i)) * kValueEffect * (value - kLargestValue / 2);
    }
    for (int i = 0; i < kClickCategories; ++i) {
      // Each feature has popular categories of its own.
      const auto offset = static_cast<std::uint64_t>(i * rows_ / kClickCategories);
      const std::uint64_t row = scatter_(zipf_rank(random, rows_), offset);
      to.ids[static_cast<std::size_t>(i)] = static_cast<int>(row);
      log_odds += kEffect * effect(row);
    }
    return sigmoid(log_odds);
  }

 private:
  double effect(std::uint64_t number) const { return Random(seed_, kEffectStream + number).uniform(-1, 1); }

  std::int64_t rows_;
  std::uint64_t seed_;
  Scatter scatter_;
  SampleForm form_;
};

// Samples of a law, which draws what is known of one and says how probable label 1 is.
template <typename Law>
class Drawn final : public Dataset {
 public:
  Drawn(const Law& law, std::uint64_t seed, std::uint64_t stream, std::int64_t size)
      : law_(law), seed_(seed), stream_(stream), size_(size) {}

  std::int64_t size() const override { return size_; }
  const SampleForm& form() const override { return law_.form(); }
  Judgement judgement() const override { return Judgement::kClicks; }

  void read(std::int64_t index, std::int64_t /*epoch*/, const SampleRoom& to) const override {
    Random random = random_of(index);
    const double probability = law_.draw(random, to);
    to.labels[0] = random.uniform() < probability ? 1 : 0;
  }

  std::optional<double> best_loss() const override {
    std::vector<float> values(static_cast<std::size_t>(form().values()));
    std::vector<int> ids(static_cast<std::size_t>(form().id_columns()));
    double sum = 0;
    for (std::int64_t i = 0; i < size_; ++i) {
      Random random = random_of(i);
      sum += entropy(law_.draw(random, {.values = values, .ids = ids, .labels = {}}));
    }
    return sum / static_cast<double>(size_);
  }

 private:
  Random random_of(std::int64_t index) const { return Random(seed_, stream_ + static_cast<std::uint64_t>(index)); }

  Law law_;
  std::uint64_t seed_, stream_;
  std::int64_t size_;
};

template <typename Law>
DatasetPair pair_of(const ZipfCounts& counts, std::uint64_t seed) {
  const Law law(counts.rows, seed);
  return {std::make_unique<Drawn<Law>>(law, seed, kTrainingStream, counts.train),
          std::make_unique<Drawn<Law>>(law, seed, kTestStream, counts.test)};
}

}  // namespace

std::int64_t zipf_rank(Random& random, std::int64_t count) {
  const double drawn = std::exp(random.uniform() * std::log(static_cast<double>(count) + 1));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(drawn) - 1, 0, count - 1);
}

DatasetPair make_zipf_ratings(const ZipfCounts& counts, std::uint64_t seed) {
  return pair_of<ZipfRatings>(counts, seed);
}

DatasetPair make_zipf_clicks(const ZipfCounts& counts, std::uint64_t seed) { return pair_of<ZipfClicks>(counts, seed); }

}  // namespace syncopate::worker
