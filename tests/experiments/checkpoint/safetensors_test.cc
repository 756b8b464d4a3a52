#include "experiments/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// Two tensors with padding between them, and values that count up from 0 through the arena.
struct Sample {
  Sample() {
    layout.add("dense1.weight", {2, 3});
    layout.add("dense1.bias", {2});
    weights.resize(layout.size());
    std::iota(weights.begin(), weights.end(), 0.0f);
  }
  std::string bytes() const { return to_safetensors(layout, weights, {{"model", "mlp"}}); }

  ParamLayout layout;
  std::vector<float> weights;
};

std::string with_header(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\0');
}

TEST(Safetensors, HasWholeNumbersInFrontOfTheTensors) {
  const Sample sample;
  const std::vector<WholeNumbers> rows = {{"user.rows", {3, 1LL << 40, -1}}, {"item.rows", {7}}};
  const Result<SafetensorsFile> file = from_safetensors(to_safetensors(sample.layout, sample.weights, {}, rows));
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->tensors.size(), 4u);
  EXPECT_EQ(file->tensors[0].name, "user.rows");
  EXPECT_THAT(file->tensors[0].shape, ElementsAre(3));
  EXPECT_THAT(file->tensors[0].whole_numbers, ElementsAre(3, 1LL << 40, -1));
  EXPECT_TRUE(file->tensors[0].values.empty());
  EXPECT_THAT(file->tensors[1].whole_numbers, ElementsAre(7));
  EXPECT_THAT(file->tensors[2].values, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Safetensors, ComesBackAsItWasWithoutThePadding) {
  const Result<SafetensorsFile> file = from_safetensors(Sample().bytes());
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->tensors.size(), 2u);
  EXPECT_EQ(file->tensors[0].name, "dense1.weight");
  EXPECT_THAT(file->tensors[0].shape, ElementsAre(2, 3));
  EXPECT_THAT(file->tensors[0].values, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(file->tensors[1].values, ElementsAre(16, 17));
  EXPECT_THAT(file->metadata, ElementsAre(Pair("model", "mlp")));
}

TEST(Safetensors, BeginsItsValuesAtAMultipleOfEightBytes) {
  for (const char* model : {"", "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg"}) {
    const Sample sample;
    const std::string bytes = to_safetensors(sample.layout, sample.weights, {{"model", model}});
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    EXPECT_EQ(length % 8, 0u);
    EXPECT_EQ(bytes.size(), 8 + length + 8 * sizeof(float));
  }
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string bytes = Sample().bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Result<SafetensorsFile> file = from_safetensors(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(file.ok()) << size;
    EXPECT_EQ(file.status().code(), Code::kDataLoss);
  }
  EXPECT_THAT(from_safetensors(bytes + "x").status().message(), HasSubstr("1 bytes belong to no tensor"));
}

TEST(Safetensors, RefusesAHeaderThatDoesNotFitItsData) {
  const auto refusal = [](const std::string& header, std::size_t data_bytes = 8) {
    const Result<SafetensorsFile> file = from_safetensors(with_header(header, data_bytes));
    return file.ok() ? "accepted" : file.status().message();
  };
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"), "accepted");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]}})", 0), "accepted") << "no rows";
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[0,0]}})", 0),
              HasSubstr("differ in size"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("{\"a\""), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(R"({"a":1})"), HasSubstr("must have dtype"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})"), HasSubstr("must be F32"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})"), HasSubstr("outside the file"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})"), HasSubstr("outside the file"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})"), HasSubstr("two numbers"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})"), HasSubstr("differ in size"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}})"), HasSubstr("differ in size"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"),
              HasSubstr("differ in size"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                          "b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
              HasSubstr("overlaps"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":1}})", 0), HasSubstr("must be a text"));
}

TEST(Safetensors, RefusesANameThatIsThereTwice) {
  const std::string header =
      R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const auto refused = parse_safetensors_header(header, 4).status();
  EXPECT_EQ(refused.code(), Code::kDataLoss);
  EXPECT_EQ(refused.message(), "tensor 'w': is named twice");
  EXPECT_TRUE(parse_safetensors_header(header.substr(0, header.find(",\"w\"")) + "}", 4).ok());
}

TEST(Safetensors, NamesTheFileThatCannotBeRead) {
  EXPECT_EQ(read_safetensors("/nowhere/model.safetensors").status().message(),
            "/nowhere/model.safetensors: cannot be read: No such file or directory");
}

TEST(Safetensors, LoadsInPlainPython) {
  if (std::system("python3 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "python3 is not installed";
  const std::string path = testing::TempDir() + "safetensors_test.safetensors";
  const Sample sample;
  ASSERT_TRUE(write_safetensors(path, sample.layout, sample.weights, {{"model", "mlp"}}).ok());
  const std::string script =
      "import json, struct, sys\n"
      "data = open(sys.argv[1], 'rb').read()\n"
      "length = int.from_bytes(data[:8], 'little')\n"
      "header = json.loads(data[8:8 + length])\n"
      "assert header.pop('__metadata__') == {'model': 'mlp'}\n"
      "values = lambda t: [v for v, in struct.iter_unpack('<f', data[8 + length:][slice(*t['data_offsets'])])]\n"
      "assert header['dense1.weight']['shape'] == [2, 3]\n"
      "assert values(header['dense1.weight']) == [0, 1, 2, 3, 4, 5]\n"
      "assert values(header['dense1.bias']) == [16, 17]\n";
  EXPECT_EQ(std::system(("python3 -c \"" + script + "\" '" + path + "'").c_str()), 0);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace syncopate::experiments
