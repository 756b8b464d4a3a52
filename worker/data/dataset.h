// Dataset: the samples of one part of a data set, training or test, and what each consists of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace syncopate::worker {

struct ImageShape {
  int height = 0;
  int width = 0;
  int channels = 0;

  int values() const { return height * width * channels; }
  bool operator==(const ImageShape&) const = default;
};

// Whole numbers of one meaning: the positions of a text, a user, hashed categories.
struct IdField {
  std::string name;        // "token"
  int columns = 1;         // numbers a sample
  std::int64_t range = 0;  // each is 0 .. range-1

  bool operator==(const IdField&) const = default;
};

// What one sample consists of.
struct SampleForm {
  ImageShape image;          // its values; features that are no image have the shape 1x1xN, none 0x0x0
  int classes = 0;           // a label is 0 .. classes-1
  std::vector<IdField> ids;  // its whole numbers, field after field
  int labels = 1;            // one, or one for each position of a text

  int values() const { return image.values(); }
  int id_columns() const {
    int columns = 0;
    for (const IdField& field : ids) columns += field.columns;
    return columns;
  }
  bool operator==(const SampleForm&) const = default;
};

// How what is learnt is judged on a test set (worker/metrics.h).
enum class Judgement {
  kAccuracy,  // the share of labels that were told right
  kRanking,   // the place of a positive among kRankedItems samples: the first of each so many is it
  kClicks,    // how well the positives (label 1) are told from the negatives
};
inline constexpr int kRankedItems = 100;  // one and 99, as in He et al. 2017, section 4.1

// Room for one sample or for several, one behind the other.
struct SampleRoom {
  std::span<float> values;
  std::span<int> ids;
  std::span<int> labels;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;  // samples
  virtual const SampleForm& form() const = 0;
  virtual Judgement judgement() const { return Judgement::kAccuracy; }

  // Writes sample `index` as it is in epoch `epoch`: the same for the same arguments, and, where samples are drawn
  // (negatives of a recommender), different from epoch to epoch. A test set is read as of epoch 0. Thread-safe.
  virtual void read(std::int64_t index, std::int64_t epoch, const SampleRoom& to) const = 0;

  // The least cross-entropy that any model can have on what these samples are drawn from, in nats a label, where the
  // process that draws them is known. On the samples themselves, which are finitely many, it may be a little less.
  virtual std::optional<double> best_loss() const { return std::nullopt; }
};

}  // namespace syncopate::worker
