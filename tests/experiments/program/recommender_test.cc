// Recommenders, whose embeddings are row-sparse tables, in every mode.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "experiments/checkpoint/safetensors.h"
#include "tests/support/run_program.h"
#include "worker/data/zipf_sets.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::Program;
using testing_support::operator+;
using testing_support::ProgramEnd;
using testing_support::TemporaryFolder;

using Flags = std::vector<std::string>;

constexpr worker::ZipfCounts kCounts{.rows = 40, .train = 32768, .test = 4000};

Flags generated(const std::string& dataset, const std::string& model) {
  return {"--dataset=" + dataset,
          "--model=" + model,
          fmt::format("--table-rows={}", kCounts.rows),
          fmt::format("--train-samples={}", kCounts.train),
          fmt::format("--test-samples={}", kCounts.test),
          "--learning-rate=0.005",
          "--seed=1"};
}

struct ModeCase {
  const char* name;
  Flags flags;
};

class RecommenderRun : public testing::TestWithParam<ModeCase> {};

TEST_P(RecommenderRun, ComesNearTheBestLossThatCanBeReached) {
  const struct {
    Flags flags;
    double best_loss;
    double distance;
  } cases[] = {
      {generated("zipf-ratings", "ncf:8"), *worker::make_zipf_ratings(kCounts, 1).test->best_loss(), 0.05},
      {generated("zipf-clicks", "wide-deep:4"), *worker::make_zipf_clicks(kCounts, 1).test->best_loss(), 0.06},
  };
  for (const auto& [flags, best_loss, distance] : cases) {
    Program program(flags + GetParam().flags);
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    const nlohmann::json summary = program.summary();
    EXPECT_LT(summary["final_test_loss"], best_loss + distance) << end.out;
    EXPECT_GT(summary["final_test_loss"], best_loss - 0.03);  // the labels as they were drawn are finitely many
    EXPECT_GT(summary["final_test_auc"], 0.8);
    EXPECT_THAT(end.out, HasSubstr("AUC 0."));
  }
}

INSTANTIATE_TEST_SUITE_P(
    , RecommenderRun,
    testing::Values(
        ModeCase{"Local", {"--mode=local", "--epochs=3", "--batch-size=128"}},
        ModeCase{"Dense", {"--mode=local", "--epochs=3", "--batch-size=128", "--embeddings=dense"}},
        ModeCase{"Allreduce", {"--mode=allreduce", "--workers=2", "--epochs=3", "--batch-size=64"}},
        ModeCase{"PsSync", {"--mode=ps", "--consistency=sync", "--workers=2", "--epochs=3", "--batch-size=64"}},
        ModeCase{"PsAsync", {"--mode=ps", "--consistency=async", "--servers=2", "--epochs=3", "--batch-size=128"}}),
    [](const auto& info) { return std::string(info.param.name); });

// 90 users in six circles, of 30 items each; everybody has rated twelve of the own circle's.
std::string ratings_of_circles() {
  std::string text = "userId,movieId,rating,timestamp\n";
  for (int user = 0; user < 90; ++user) {
    for (int i = 0; i < 12; ++i) {
      const int item = user % 6 * 30 + (user * 7 + i * 11) % 30;
      text += fmt::format("{},{},3.5,{}\n", user + 1, 10 * item, 1000 + (i * 5) % 12);
    }
  }
  return text;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Ratings, AreLearntAndJudgedByTheirRanking) {
  const TemporaryFolder data;
  write(data.path() / "ml-small/ratings.csv", ratings_of_circles());
  Program program({"--dataset=ratings", "--model=ncf:8", "--mode=local", "--epochs=20", "--batch-size=64",
                   "--learning-rate=0.01", "--target-accuracy=0.5", "--data-dir=" + data.path().string()});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json summary = program.summary();
  EXPECT_GT(summary["final_test_hr10"], 0.5) << "by chance it is 0.1\n" << end.out;
  EXPECT_GT(summary["final_test_ndcg10"], 0.2);
  EXPECT_TRUE(summary["final_test_auc"].is_null());
  EXPECT_FALSE(summary["seconds_to_target"].is_null()) << "the target is of HR@10";
  EXPECT_THAT(end.out, AllOf(HasSubstr("HR@10 0."), HasSubstr("NDCG@10 0.")));
}

TEST(Clicks, AreLearntAndJudgedByTheirAuc) {
  const TemporaryFolder data;
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    const int kind = i * 7919 % 64;  // which decides the label
    text += fmt::format("{}", kind % 2);
    for (int number = 0; number < 13; ++number) text += number == 3 ? "\t" : fmt::format("\t{}", i * number % 10);
    for (int category = 0; category < 26; ++category) {
      text += category == 5 ? fmt::format("\t{:08x}", kind) : fmt::format("\t{:x}", i * 31 % (category + 2));
    }
    text += "\n";
  }
  write(data.path() / "criteo/train.txt", text);
  Program program({"--dataset=clicks", "--model=wide-deep:4", "--mode=local", "--epochs=4", "--batch-size=64",
                   "--table-rows=5000", "--data-dir=" + data.path().string()});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_GT(program.summary()["final_test_auc"], 0.95) << end.out;
}

TEST(BrokenRatings, EndTheRunBeforeItBegins) {
  const TemporaryFolder data;
  write(data.path() / "u.data", "1\t2\t3\t4\n1\tx\t3\t4\n");
  Program program({"--dataset=ratings", "--model=ncf", "--mode=local", "--data-dir=" + data.path().string()});
  const ProgramEnd end = program.wait();
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.err, HasSubstr("u.data: line 2: movieId 'x', expected a whole number of 0 or more"));
}

// The values of all rows of each table, by row; and the other tensors.
struct Weights {
  std::map<std::string, std::map<std::int64_t, std::vector<float>>> rows;
  std::map<std::string, std::vector<float>> dense;
};

Weights weights_of(const Program& program) {
  const Result<SafetensorsFile> file = read_safetensors((program.output() / "model.safetensors").string());
  EXPECT_TRUE(file.ok()) << file.status().message();
  Weights weights;
  std::map<std::string, std::vector<std::int64_t>> keys;
  for (const SafetensorsFile::Tensor& tensor : file->tensors) {
    if (!tensor.whole_numbers.empty()) keys[tensor.name] = tensor.whole_numbers;
  }
  for (const SafetensorsFile::Tensor& tensor : file->tensors) {
    const bool is_table = tensor.name == "user" || tensor.name == "item" || tensor.name == "category";
    if (!is_table && tensor.whole_numbers.empty()) weights.dense[tensor.name] = tensor.values;
    if (!is_table) continue;
    const auto width = static_cast<std::ptrdiff_t>(tensor.shape[1]);
    for (std::ptrdiff_t i = 0; i < tensor.shape[0]; ++i) {
      const auto named = keys.find(tensor.name + ".rows");
      const std::int64_t row = named == keys.end() ? i : named->second[static_cast<std::size_t>(i)];
      weights.rows[tensor.name][row] = {tensor.values.begin() + i * width, tensor.values.begin() + (i + 1) * width};
    }
  }
  return weights;
}

class SparseAndDense : public testing::TestWithParam<ModeCase> {};

TEST_P(SparseAndDense, ComeToTheSameWeightsWithSgd) {
  Flags flags = Flags{"--dataset=zipf-ratings", "--model=ncf:4",      "--table-rows=500",
                      "--train-samples=4096",   "--test-samples=500", "--optimizer=sgd",
                      "--learning-rate=0.5",    "--batch-size=32",    "--steps=40"} +
                GetParam().flags;
  Program sparse(flags), dense(flags + Flags{"--embeddings=dense"});
  ASSERT_EQ(sparse.wait().exit_code, 0) << sparse.errors();
  ASSERT_EQ(dense.wait().exit_code, 0) << dense.errors();
  const Weights few = weights_of(sparse), all = weights_of(dense);
  EXPECT_EQ(few.dense, all.dense);
  for (const char* table : {"user", "item"}) {
    EXPECT_GT(few.rows.at(table).size(), 100u);
    EXPECT_EQ(all.rows.at(table).size(), 500u);
    for (const auto& [row, values] : few.rows.at(table)) ASSERT_EQ(values, all.rows.at(table).at(row)) << table << row;
  }
}

INSTANTIATE_TEST_SUITE_P(
    , SparseAndDense,
    testing::Values(ModeCase{"Local", {"--mode=local"}}, ModeCase{"Allreduce", {"--mode=allreduce", "--workers=3"}},
                    ModeCase{"Ps", {"--mode=ps", "--consistency=sync", "--workers=3", "--servers=2"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SynchronousModes, ComeToTheSameWeightsOfTables) {
  const Flags job{"--dataset=zipf-clicks", "--model=wide-deep:3", "--table-rows=2000", "--train-samples=4096",
                  "--test-samples=200",    "--batch-size=16",     "--steps=30",        "--workers=3"};
  Program allreduce(job + Flags{"--mode=allreduce"}),
      servers(job + Flags{"--mode=ps", "--consistency=sync", "--servers=2"}),
      hybrid(job + Flags{"--mode=hybrid", "--servers=2", "--shards-per-server=2"}),
      chosen(job + Flags{"--mode=hybrid", "--servers=3", "--exchange=auto"});
  ASSERT_EQ(allreduce.wait().exit_code, 0) << allreduce.errors();
  const Weights one = weights_of(allreduce);
  ASSERT_FALSE(one.rows.at("category").empty());
  for (Program* const program : {&servers, &hybrid, &chosen}) {
    ASSERT_EQ(program->wait().exit_code, 0) << program->errors();
    const Weights other = weights_of(*program);
    EXPECT_EQ(one.dense, other.dense);
    EXPECT_EQ(one.rows, other.rows);
  }
}

}  // namespace
}  // namespace syncopate::experiments
