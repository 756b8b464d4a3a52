#include "experiments/config/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::TemporaryFolder;

constexpr const char* kOwnCard = R"(name = "my card"  # in the office
fp32 = "10TFLOPS"
bf16 = "40TFLOPS"
bandwidth = "500GB/s"
memory = "24GB"
)";

TEST(DeviceChoice, ReadsAFile) {
  const Result<prediction::DeviceRates> device =
      read_device(std::string(kOwnCard) + "launch = \"9us\"\nsource = \"a sticker\"\n");
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(device->name, "my card");
  EXPECT_EQ(device->title, "my card");
  EXPECT_THAT(device->precisions(), ElementsAre("fp32", "bf16"));
  EXPECT_DOUBLE_EQ(*device->flops_in("bf16"), 40e12);
  EXPECT_DOUBLE_EQ(device->bytes_per_second, 500e9);
  EXPECT_DOUBLE_EQ(device->memory_bytes, 24e9);
  EXPECT_DOUBLE_EQ(device->launch_seconds, 9e-6);
  EXPECT_EQ(device->source, "a sticker");
}

TEST(DeviceChoice, TakesTheUsualCostOfALaunchUnlessOneIsGiven) {
  EXPECT_DOUBLE_EQ(read_device(kOwnCard)->launch_seconds, prediction::kLaunchSeconds);
  EXPECT_THAT(read_device(kOwnCard)->source, HasSubstr("gives no source"));
}

TEST(DeviceChoice, SaysWhatIsWrongInAFileAndWhatWouldBeRight) {
  struct Case {
    std::string toml;
    const char* message;
  };
  const std::string whole = kOwnCard;
  const Case cases[] = {
      {"", "name is missing: what to call it, as in name = \"my card\""},
      {"name = \"a\"", "bandwidth is missing: bytes a second of its memory, as in bandwidth = \"2039GB/s\""},
      {"name = \"a\"\nbandwidth = \"1GB/s\"", "memory is missing: bytes, as in memory = \"80GB\""},
      {"name = \"a\"\nbandwidth = \"1GB/s\"\nmemory = \"1GB\"",
       "fp32, tf32, bf16 or fp16 is missing, one of them at least: operations a second, as in fp32 = \"19.5TFLOPS\""},
      {"name = \"\"", "name = '': must be what to call it, as in my card (up to 200 letters)"},
      {whole + "tf32 = 5", "tf32 = '5': must be operations a second, as in 19.5TFLOPS (1GFLOPS to 1000PFLOPS)"},
      {whole + "tf32 = \"nanTFLOPS\"", "tf32 = 'nanTFLOPS': must be operations"},
      {"bandwidth = \"10GB\"", "bandwidth = '10GB': must be bytes a second of its memory, as in 2039GB/s"},
      {"memory = \"-1GB\"", "memory = '-1GB': must be bytes, as in 80GB (1MB to 1000TB)"},
      {"launch = \"2s\"", "launch = '2s': must be the host's time for a kernel, as in 7us (up to 1s)"},
      {"bandwith = \"1GB/s\"", "bandwith: no such entry; did you mean bandwidth?"},
      {"colour = \"red\"", "there are name, fp32, tf32, bf16, fp16, bandwidth, memory, launch and source"},
      {whole + "memory = \"1GB\"", "memory: given twice; once is enough"},
      {"name", "line 1"},
  };
  for (const Case& c : cases) {
    const Result<prediction::DeviceRates> device = read_device(c.toml);
    ASSERT_FALSE(device.ok()) << c.toml;
    EXPECT_THAT(device.status().message(), HasSubstr(c.message)) << c.toml;
  }
}

TEST(DeviceChoice, OpensADeviceOfTheTableAndAFile) {
  EXPECT_EQ(open_device("v100")->title, "V100 SXM2 16 GB");
  const TemporaryFolder folder;
  const std::string file = folder.path() / "card.toml";
  std::ofstream(file) << kOwnCard;
  EXPECT_EQ(open_device(file)->name, "my card");
  std::ofstream(file) << "memory = 1";
  EXPECT_EQ(open_device(file).status().message(),
            "--device=" + file + ": memory = '1': must be bytes, as in 80GB (1MB to 1000TB)");
  EXPECT_THAT(open_device(folder.path() / "none.toml").status().message(), HasSubstr("none.toml"));
  EXPECT_THAT(open_device("v10").status().message(), testing::AllOf(HasSubstr("--device=v10: must be h100, "),
                                                                    HasSubstr("ends in .toml; did you mean v100?")));
  EXPECT_THAT(open_device("abacus").status().message(), testing::EndsWith("ends in .toml"));
}

}  // namespace
}  // namespace syncopate::experiments
