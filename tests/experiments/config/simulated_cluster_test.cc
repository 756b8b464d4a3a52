#include "experiments/config/simulated_cluster.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(AComputeModel, IsATimeARateOrMeasured) {
  EXPECT_TRUE(ComputeModel::parse("solo")->is_solo());
  EXPECT_EQ(ComputeModel::parse("250us")->step, std::chrono::microseconds(250));
  EXPECT_EQ(ComputeModel::parse("5ms")->step, std::chrono::milliseconds(5));
  EXPECT_EQ(ComputeModel::parse("1.5s")->step, std::chrono::milliseconds(1500));
  EXPECT_EQ(ComputeModel::parse("0.3")->to_string(), "300ms") << "seconds, which are told with their unit";
  EXPECT_EQ(ComputeModel::parse("900GFLOPS")->flops_per_second, 900e9);
  EXPECT_EQ(ComputeModel::parse("15TFLOPS")->flops_per_second, 15e12);
}

TEST(AComputeModel, IsReadAsItIsWritten) {
  for (const char* text :
       {"solo", "0.25ms", "5ms", "1500ms", "900GFLOPS", "15000GFLOPS", "profile", "a/mlp.json", "v100", "a100:amp"}) {
    EXPECT_EQ(ComputeModel::parse(text)->to_string(), text);
  }
}

TEST(AComputeModel, RefusesWhatIsNeither) {
  for (const char* text :
       {"", "ms", "0ms", "-5ms", "2000s", "2h", "TFLOPS", "0TFLOPS", "15FLOPS", "nanms", "t4", "v100:"}) {
    EXPECT_FALSE(ComputeModel::parse(text).ok()) << text;
  }
}

TEST(AComputeModel, OfAKnownDeviceIsNeitherMeasuredNorGiven) {
  const ComputeModel model = *ComputeModel::parse("a100:amp");
  EXPECT_FALSE(model.is_solo());
  EXPECT_EQ(model.device, "a100:amp");
  EXPECT_FALSE(model.step || model.flops_per_second);
}

TEST(AComputeModel, OfAProfileIsNeitherMeasuredNorGiven) {
  for (const char* text : {"profile", "mlp.json"}) {
    const ComputeModel model = *ComputeModel::parse(text);
    EXPECT_FALSE(model.is_solo());
    EXPECT_EQ(model.profile, text);
    EXPECT_FALSE(model.step || model.flops_per_second);
  }
}

TEST(AProcessingModel, IsReadAsItIsWritten) {
  for (const char* text : {"none", "solo", "sum:11GB/s", "sum:11GB/s,update:4.2GB/s,encode:900MB/s,decode:2GB/s"}) {
    EXPECT_EQ(ProcessingModel::parse(text)->to_string(), text);
  }
  const ProcessingModel model = *ProcessingModel::parse("update:4GB/s,sum:500MB/s");
  EXPECT_EQ(model.source, ProcessingModel::Source::kGiven);
  EXPECT_EQ(model.update, 4e9);
  EXPECT_EQ(model.sum, 5e8);
  EXPECT_EQ(model.encode, 0);
}

TEST(AProcessingModel, RefusesWhatIsNone) {
  for (const char* text : {"", "sum", "sum:", "sum:4", "sum:4GB", "sum:4GB/s,", ",sum:4GB/s", "sum:4GB/s,sum:4GB/s",
                           "product:4GB/s", "sum:0GB/s", "sum:nanGB/s", "update:-1GB/s", "sum:1e9GB/s"}) {
    EXPECT_FALSE(ProcessingModel::parse(text).ok()) << text;
  }
}

TEST(AFabric, IsReadAsItIsWritten) {
  for (const char* text : {"switch", "racks:4", "racks:4,oversubscription:3", "racks:2,oversubscription:1.5"}) {
    EXPECT_EQ(FabricChoice::parse(text)->to_string(), text);
  }
  EXPECT_EQ(FabricChoice::parse("racks:8,oversubscription:4")->racks, 8);
  EXPECT_EQ(FabricChoice::parse("racks:8,oversubscription:4")->oversubscription, 4);
}

TEST(AFabric, RefusesWhatIsNone) {
  for (const char* text : {"", "rack:4", "racks:", "racks:0", "racks:4,", "racks:4,oversubscription:0.5", "racks:4x",
                           "racks:4,oversubscription:nan", "racks:2000", "racks:4,more:2"}) {
    EXPECT_FALSE(FabricChoice::parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace syncopate::experiments
