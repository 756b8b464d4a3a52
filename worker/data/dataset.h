// Dataset: the samples of one part of a data set, training or test, and their form.
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

// A field of whole numbers with one meaning: the positions of a text, a user, hashed categories.
struct IdField {
  std::string name;        // "token"
  int columns = 1;         // numbers per sample
  std::int64_t range = 0;  // each is 0 .. range-1

  bool operator==(const IdField&) const = default;
};

// The form of a sample.
struct SampleForm {
  ImageShape image;          // its values; features that are not an image have the shape 1x1xN, or 0x0x0 if there are
                             // none
  int classes = 0;           // a label is 0 .. classes-1
  std::vector<IdField> ids;  // its whole numbers, field after field
  int labels = 1;            // one, or one for each position of a text
  bool regression = false;   // a number is to be predicted, a target; the label says only that there is a sample

  int values() const { return image.values(); }
  int id_columns() const {
    int columns = 0;
    for (const IdField& field : ids) columns += field.columns;
    return columns;
  }
  bool operator==(const SampleForm&) const = default;
};

// How a model is judged on a test set (worker/metrics.h).
enum class Judgement {
  kAccuracy,    // the share of labels that were predicted
  kRanking,     // the rank of a positive among kRankedItems samples, of which it is the first
  kClicks,      // how well the positives (label 1) are separated from the negatives
  kRegression,  // how far predicted numbers are from their targets
};
inline constexpr int kRankedItems = 100;  // one and 99, as in He et al. 2017, section 4.1

// Memory for one sample or for several, one after the other.
struct SampleRoom {
  std::span<float> values;
  std::span<int> ids;
  std::span<int> labels;
  std::span<float> targets = {};  // one a sample where the form says regression, else none
};

// How a target, as models learn it, follows from the number that a person's file has.
struct TargetScale {
  double mean = 0;
  double deviation = 1;

  float scaled(double number) const { return static_cast<float>((number - mean) / deviation); }
  double number(double scaled) const { return scaled * deviation + mean; }
  bool operator==(const TargetScale&) const = default;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;  // samples
  virtual const SampleForm& form() const = 0;
  // Whether all samples are alike and say nothing, so that their order is nothing either.
  virtual bool is_blank() const { return false; }
  virtual Judgement judgement() const { return Judgement::kAccuracy; }

  // Writes sample `index` of epoch `epoch`: the same for the same arguments and, if samples are drawn (negatives of a
  // recommender), different from epoch to epoch. A test set is read with epoch 0. Thread-safe.
  virtual void read(std::int64_t index, std::int64_t epoch, const SampleRoom& to) const = 0;
  // Writes sample `index` as a test set has it, which is the same always and not augmented. Thread-safe.
  virtual void read_plain(std::int64_t index, const SampleRoom& to) const { read(index, 0, to); }

  // Returns the label of sample `index` where it has one, the same in every epoch, that is known without reading the
  // sample; none for all other data sets. Thread-safe.
  virtual std::optional<int> fixed_label(std::int64_t /*index*/) const { return std::nullopt; }

  // Returns how targets of regression were scaled.
  virtual TargetScale target_scale() const { return {}; }
  // The classes' names, in the order of their numbers; empty where they are only numbered.
  virtual std::vector<std::string> class_names() const { return {}; }

  // The least cross-entropy that any model can have on the distribution of these samples, in nats per label; empty if
  // that distribution is not known. On the samples themselves, which are finitely many, the loss may be a little lower.
  virtual std::optional<double> best_loss() const { return std::nullopt; }
};

}  // namespace syncopate::worker
