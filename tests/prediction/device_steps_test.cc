#include "prediction/device_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "prediction/model_profile.h"
#include "prediction/published_table.h"

namespace syncopate::prediction {
namespace {

using testing::AllOf;
using testing::HasSubstr;

double milliseconds(std::string_view device, std::string_view model, int batch_size) {
  const Result<TypicalStep> step = typical_step(device, model, batch_size);
  EXPECT_TRUE(step.ok()) << step.status().message();
  return step.ok() ? step->seconds * 1e3 : 0;
}

TEST(DeviceSteps, HasAProfileAndASourceForEachRow) {
  std::map<std::vector<std::string>, std::set<std::string>> sources;
  std::set<std::vector<std::string>> batches;
  for (const PublishedRow& row : published_table("device_steps")) {
    const std::vector<std::string> pair = {row.text("device"), row.text("model"), row.text("precision")};
    EXPECT_TRUE(built_in_profile(row.text("model")).ok()) << row.text("model");
    EXPECT_FALSE(row.text("source").empty());
    EXPECT_THAT(row.text("unit"), testing::AnyOf("ms", "samples/s"));
    EXPECT_GT(row.number("figure"), 0);
    EXPECT_GE(row.number("batch_size"), 1);
    sources[pair].insert(row.text("system") + row.text("source"));
    std::vector<std::string> batch = pair;
    batch.push_back(row.text("batch_size"));
    EXPECT_TRUE(batches.insert(batch).second) << "stands twice: " << testing::PrintToString(batch);
  }
  for (const auto& [pair, names] : sources) EXPECT_EQ(names.size(), 1u) << testing::PrintToString(pair);
  for (const char* device : {"v100", "a100", "h100", "p100", "k80", "cpu-core"}) EXPECT_TRUE(names_device(device));
}

TEST(DeviceSteps, TakesARowAsItStands) {
  EXPECT_NEAR(milliseconds("p100", "resnet50", 64), 64 / 219.0 * 1e3, 1e-9);
  EXPECT_DOUBLE_EQ(milliseconds("v100", "vgg16", 16), 83.5);
  const Result<TypicalStep> step = typical_step("p100", "resnet50", 64);
  EXPECT_THAT(step->basis, AllOf(HasSubstr("fp32, 219 samples/s in batches of 64; TensorFlow"),
                                 HasSubstr("(tensorflow/docs@7c36502: site/en/r1/guide/performance/benchmarks.md)")));
}

TEST(DeviceSteps, GrowsEvenlyBetweenTwoBatchesAndInProportionOutside) {
  const double low = milliseconds("p100", "resnet50", 32), high = milliseconds("p100", "resnet50", 64);
  EXPECT_NEAR(milliseconds("p100", "resnet50", 48), (low + high) / 2, 1e-9);
  EXPECT_NEAR(milliseconds("p100", "resnet50", 16), low / 2, 1e-9);
  EXPECT_NEAR(milliseconds("p100", "resnet50", 256), high * 4, 1e-9);
  EXPECT_THAT(typical_step("p100", "resnet50", 48)->basis,
              HasSubstr("between 195 samples/s in batches of 32 and 219 samples/s in batches of 64"));
  EXPECT_THAT(typical_step("p100", "resnet50", 256)->basis, HasSubstr("as many as 219 samples/s in batches of 64"));
}

TEST(DeviceSteps, TakesTheLargestBatchUnlessOneIsGiven) {
  EXPECT_EQ(typical_step("p100", "resnet50", 0)->batch_size, 64);
}

TEST(DeviceSteps, TakesAPrecisionByItsNameAndElseTheFirst) {
  EXPECT_THAT(typical_step("a100", "resnet50", 0)->basis, testing::StartsWith("tf32, 909 samples/s"));
  EXPECT_THAT(typical_step("a100:amp", "resnet50", 0)->basis, testing::StartsWith("amp, 2375 samples/s"));
  EXPECT_EQ(milliseconds("a100", "torchvision-resnet50", 256), milliseconds("a100", "resnet50", 256));
}

TEST(DeviceSteps, ListsWhatIsKnownForAnUnknownPair) {
  EXPECT_FALSE(names_device("t4"));
  EXPECT_FALSE(names_device("a100:"));
  EXPECT_FALSE(names_device(""));
  EXPECT_THAT(typical_step("k80", "gpt2", 8).status().message(),
              AllOf(HasSubstr("no step of gpt2 on it is known; there are a100 (resnet50, "),
                    HasSubstr("k80 (alexnet, inception3, resnet50, vgg16)")));
  EXPECT_EQ(typical_step("a100:fp64", "resnet50", 8).status().message(),
            "of resnet50 there are a100:tf32 and a100:amp");
}

}  // namespace
}  // namespace syncopate::prediction
