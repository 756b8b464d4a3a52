#include "prediction/model_profile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::prediction {
namespace {

using testing::HasSubstr;

std::string profile_with(const std::string& tensors) {
  return fmt::format(R"({{"model":"toy","source":"this test","input":[2],"other_forward_flops":0,"tensors":[{}]}})",
                     tensors);
}

std::string fault_of(const std::string& tensors) { return read_profile(profile_with(tensors)).status().message(); }

TEST(ModelProfile, ReadsTensorsInForwardOrder) {
  const Result<ModelProfile> profile = read_profile(
      profile_with(R"({"name":"w","shape":[3,4],"forward_flops":24},{"name":"b","shape":[4],"forward_flops":0})"));
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  ASSERT_EQ(profile->tensors.size(), 2u);
  EXPECT_EQ(profile->tensors[0].name, "w");
  EXPECT_EQ(profile->tensors[0].parameters, 12);
  EXPECT_EQ(profile->tensors[0].forward_flops, 24);
  EXPECT_EQ(profile->parameters(), 16);
  EXPECT_EQ(profile->bytes(), 64);
}

TEST(ModelProfile, HasTheParametersOfEachModelBuiltIn) {
  const std::pair<const char*, std::int64_t> known[] = {{"alexnet", 61842345},
                                                        {"vgg16", 138361641},
                                                        {"resnet50", 25559081},
                                                        {"resnet101", 44551209},
                                                        {"resnet152", 60194857},
                                                        {"inception3", 23819401},
                                                        {"torchvision-vgg16", 138357544},
                                                        {"torchvision-resnet50", 25557032},
                                                        {"torchvision-resnet152", 60192808},
                                                        {"torchvision-alexnet", 61100840},
                                                        {"bert-large-128", 336226108},
                                                        {"gpt2", 124439808},
                                                        {"gpt2-xl", 1557611200},
                                                        {"mxnet-alexnet", 50844008}};
  for (const auto& [name, parameters] : known) {
    const Result<ModelProfile> profile = built_in_profile(name);
    ASSERT_TRUE(profile.ok()) << profile.status().message();
    EXPECT_EQ(profile->parameters(), parameters) << name;
  }
}

TEST(ModelProfile, CanReadEveryProfileBuiltIn) {
  EXPECT_EQ(profile_names().size(), 24u);
  for (const std::string& name : profile_names()) {
    const Result<ModelProfile> profile = built_in_profile(name);
    ASSERT_TRUE(profile.ok()) << name << ": " << profile.status().message();
    EXPECT_EQ(profile->model, name);
  }
}

TEST(ModelProfile, ListsTheProfilesForAnUnknownName) {
  const Status status = built_in_profile("resnet51").status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("resnet51: no such profile; there are alexnet, bert-base-128"));
}

TEST(ModelProfile, SaysWhichFieldIsMissing) {
  EXPECT_EQ(fault_of(R"({"name":"w","shape":[3]})"), "tensor 0: forward_flops is missing");
  EXPECT_EQ(read_profile(R"({"model":"toy"})").status().message(), "source is missing");
  EXPECT_THAT(read_profile("[]").status().message(), HasSubstr("must be an object"));
  EXPECT_THAT(read_profile("{").status().message(), HasSubstr("not JSON"));
}

TEST(ModelProfile, RefusesNumbersOutOfRange) {
  EXPECT_EQ(fault_of(R"({"name":"w","shape":[3],"forward_flops":-1})"),
            "tensor 0: forward_flops=-1: must be a number from 0 to 1e+18");
  for (const char* flops : {"1e19", "1e999", "\"3\"", "null", "NaN"}) {
    EXPECT_NE(fault_of(fmt::format(R"({{"name":"w","shape":[3],"forward_flops":{}}})", flops)), "") << flops;
  }
  for (const char* shape : {"[]", "[0]", "[-3]", "[1.5]", "3", "[1099511627777]", "[1048576,1048577]",
                            "[9223372036854775807,9223372036854775807]", "[1,1,1,1,1,1,1,1,1]"}) {
    EXPECT_THAT(fault_of(fmt::format(R"({{"name":"w","shape":{},"forward_flops":0}})", shape)),
                HasSubstr("tensor 0: shape="))
        << shape;
  }
}

TEST(ModelProfile, RefusesANameThatStandsTwice) {
  EXPECT_EQ(fault_of(R"({"name":"w","shape":[3],"forward_flops":1},{"name":"w","shape":[3],"forward_flops":1})"),
            "tensor 1: name=w stands twice; each tensor needs its own");
  EXPECT_THAT(fault_of(R"({"name":"","shape":[3],"forward_flops":1})"), HasSubstr("name=\"\""));
}

TEST(ModelProfile, RefusesWhatIsNestedHoweverDeep) {
  const std::string deep = std::string(1 << 20, '[') + std::string(1 << 20, ']');
  EXPECT_THAT(fault_of(deep), HasSubstr("tensor 0: a list of lists or objects: must be an object"));
  EXPECT_THAT(fault_of(R"({"name":"w","shape":)" + deep + R"(,"forward_flops":1})"),
              HasSubstr("shape=a list of lists"));
}

TEST(ModelProfile, RefusesNoTensorsAndTooMuchText) {
  EXPECT_THAT(fault_of(""), HasSubstr("tensors: must be a list of 1 to 65536"));
  EXPECT_THAT(read_profile(std::string((16u << 20) + 1, ' ')).status().message(), HasSubstr("at most 16777216"));
}

std::string timed(const std::string& head, const std::string& tensor) {
  return fmt::format(R"({{"model":"toy","source":"this test","input":[2],"other_forward_flops":0,{}"tensors":[{}]}})",
                     head, tensor);
}

TEST(ModelProfile, ReadsTheTimesOfABatch) {
  const Result<ModelProfile> profile = read_profile(
      timed(R"("batch_size":32,)",
            R"({"name":"w","shape":[3],"forward_flops":0,"forward_seconds":0.001,"backward_seconds":0.003})"));
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_TRUE(profile->has_times());
  EXPECT_EQ(profile->batch_size, 32);
  EXPECT_DOUBLE_EQ(profile->step_seconds(), 0.004);
}

TEST(ModelProfile, SaysWhatIsWrongWithItsTimes) {
  const auto fault = [](const std::string& head, const std::string& tensor) {
    return read_profile(timed(head, tensor)).status().message();
  };
  const std::string none = R"({"name":"w","shape":[3],"forward_flops":1})";
  EXPECT_EQ(fault(R"("batch_size":32,)", none), "tensor 0: forward_seconds is missing");
  EXPECT_EQ(fault(R"("batch_size":0,)", none), "batch_size=0: must be a whole number from 1 to 1048576");
  EXPECT_EQ(fault(R"("batch_size":"many",)", none), "batch_size=\"many\": must be a whole number from 1 to 1048576");
  EXPECT_EQ(fault(R"("batch_size":1,)",
                  R"({"name":"w","shape":[3],"forward_flops":1,"forward_seconds":-1,"backward_seconds":1})"),
            "tensor 0: forward_seconds=-1: must be a number from 0 to 1000");
  EXPECT_EQ(fault(R"("batch_size":1,)",
                  R"({"name":"w","shape":[3],"forward_flops":1,"forward_seconds":0,"backward_seconds":0})"),
            "forward_seconds and backward_seconds: are 0 in all tensors; a step takes time");
}

TEST(ModelProfile, IsReadAsItIsWritten) {
  ModelProfile toy{.model = "toy", .source = "a \"test\"", .input = {3, 8}, .other_forward_flops = 7};
  toy.tensors = {{.name = "w", .shape = {3, 4}, .parameters = 12, .forward_flops = 24},
                 {.name = "b", .shape = {4}, .parameters = 4, .forward_flops = 0}};
  for (const int batch_size : {0, 16}) {
    toy.batch_size = batch_size;
    if (batch_size > 0) toy.tensors[0].forward_seconds = 1.25e-6;
    if (batch_size > 0) toy.tensors[1].backward_seconds = 0.1 + 0.2;
    const Result<ModelProfile> again = read_profile(to_json(toy));
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(to_json(*again), to_json(toy));
    EXPECT_EQ(again->batch_size, batch_size);
    EXPECT_EQ(again->step_seconds(), toy.step_seconds());
    EXPECT_EQ(again->tensors[1].shape, toy.tensors[1].shape);
  }
}

}  // namespace
}  // namespace syncopate::prediction
