#include "worker/data/held_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace syncopate::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Sample i has the value 10 i + epoch where it is read for training, and i as it is; its label is i.
class Numbered final : public Dataset {
 public:
  explicit Numbered(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  const SampleForm& form() const override {
    static const SampleForm form{.image = {.height = 1, .width = 1, .channels = 1}, .classes = 100, .ids = {}};
    return form;
  }
  void read(std::int64_t index, std::int64_t epoch, const SampleRoom& to) const override {
    to.values[0] = static_cast<float>(10 * index + epoch);
    to.labels[0] = static_cast<int>(index);
  }
  void read_plain(std::int64_t index, const SampleRoom& to) const override {
    to.values[0] = static_cast<float>(index);
    to.labels[0] = static_cast<int>(index);
  }
  std::optional<int> fixed_label(std::int64_t index) const override { return static_cast<int>(index); }

 private:
  const std::int64_t size_;
};

DatasetPair ten_and_three() { return {.train = std::make_unique<Numbered>(10), .test = std::make_unique<Numbered>(3)}; }

std::vector<float> values_of(const Dataset& data, std::int64_t epoch) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    float value = 0;
    int label = 0;
    data.read(i, epoch, {.values = {&value, 1}, .ids = {}, .labels = {&label, 1}});
    EXPECT_EQ(data.fixed_label(i), label);
    values.push_back(value);
  }
  return values;
}

// What Keras's train_validation_split comes to (keras/src/trainers/data_adapters/data_adapter_utils.py):
// int(math.floor(batch_dim * (1.0 - validation_split))).
TEST(HoldOut, TrainsAsManySamplesAsKerasDoes) {
  EXPECT_EQ(trained_samples(60000, 0.1667), 49998);
  EXPECT_EQ(trained_samples(60000, 0.2), 48000);
  EXPECT_EQ(trained_samples(60000, 0.9), 5999) << "1 - 0.9 is a little less than 0.1";
  EXPECT_EQ(trained_samples(10, 0.25), 7);
  EXPECT_EQ(trained_samples(60000, 0), 60000);
}

TEST(HoldOut, TakesTheLastSamplesAsATestSetHasThem) {
  const Result<DatasetPair> data = hold_out(ten_and_three(), 0.25);
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_THAT(values_of(*data->train, 2), ElementsAre(2, 12, 22, 32, 42, 52, 62));
  EXPECT_THAT(values_of(*data->validation, 2), ElementsAre(7, 8, 9)) << "not augmented, the same in each epoch";
  EXPECT_EQ(data->test->size(), 3);
}

TEST(HoldOut, LeavesThePairAloneWhereNothingIsAskedFor) {
  const Result<DatasetPair> data = hold_out(ten_and_three(), 0);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->train->size(), 10);
  EXPECT_EQ(data->validation, nullptr);
}

TEST(HoldOut, RefusesToLeaveNothingToTrain) {
  DatasetPair one{.train = std::make_unique<Numbered>(1), .test = std::make_unique<Numbered>(1)};
  EXPECT_THAT(hold_out(std::move(one), 0.5).status().message(),
              HasSubstr("--validation=0.5: all training samples, of which there are 1, would be held out"));
}

}  // namespace
}  // namespace syncopate::worker
