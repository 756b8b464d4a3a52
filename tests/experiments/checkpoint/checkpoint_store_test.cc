#include "experiments/checkpoint/checkpoint_store.h"

#include "tests/experiments/checkpoint/small_checkpoint.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::TemporaryFolder;

class AStore : public testing::Test {
 protected:
  AStore() : store_((folder_.path() / "checkpoints").string()) {}

  Result<FoundCheckpoint> newest(const std::string& in = {}) {
    return newest_checkpoint(in.empty() ? folder_.path().string() : in, small_forms(), nullptr);
  }
  void damage(std::int64_t step, const std::string& file) {
    fs::resize_file(fs::path(store_.path_of(step)) / file, 20);
  }

  TemporaryFolder folder_;
  CheckpointStore store_;
};

TEST_F(AStore, KeepsTheNewest) {
  for (const std::int64_t step : {10, 20, 30}) write_small_checkpoint(store_, step, {.keep = 2});
  EXPECT_THAT(store_.steps(), ElementsAre(30, 20));
  EXPECT_FALSE(fs::exists(store_.path_of(10)));
}

TEST_F(AStore, KeepsTheNewestThatIsFiniteBesideNewerOnesThatAreNot) {
  for (const std::int64_t step : {10, 20}) write_small_checkpoint(store_, step, {.keep = 2});
  for (const std::int64_t step : {30, 40, 50}) write_small_checkpoint(store_, step, {.keep = 2, .is_finite = false});
  EXPECT_THAT(store_.steps(), ElementsAre(50, 40, 20));
  EXPECT_EQ(store_.newest_finite(), store_.path_of(20));
  write_small_checkpoint(store_, 60, {.keep = 2});
  EXPECT_THAT(store_.steps(), ElementsAre(60, 50));
}

TEST_F(AStore, PassesOverWhatIsNotFinite) {
  write_small_checkpoint(store_, 10);
  write_small_checkpoint(store_, 20, {.is_finite = false});
  const Result<FoundCheckpoint> found = newest();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->checkpoint.manifest().step, 10);
  ASSERT_THAT(found->passed_over, SizeIs(1));
  EXPECT_THAT(found->passed_over[0], HasSubstr("step-000020 is passed over: holds values that are NaN or infinite"));
  EXPECT_EQ(newest(store_.path_of(20)).status().code(), Code::kDataLoss);
  EXPECT_THAT(newest(store_.path_of(20)).status().message(), HasSubstr("NaN or infinite"));
}

TEST_F(AStore, RemovesWhatAllHaveGoneBackBehind) {
  for (const std::int64_t step : {10, 20, 30}) write_small_checkpoint(store_, step);
  write_small_checkpoint(store_, 15, {.keep = 2});
  EXPECT_THAT(store_.steps(), ElementsAre(15, 10));
}

TEST_F(AStore, LeavesAttemptsOfLaterMemberships) {
  ASSERT_TRUE(make_folder(store_.folder() + "/" + attempt_name(5, 2)).ok());
  write_small_checkpoint(store_, 10);  // of membership epoch 0
  EXPECT_TRUE(fs::exists(store_.folder() + "/" + attempt_name(5, 2)));
}

TEST_F(AStore, RemovesWhatAttemptsUpToAStepHaveLeft) {
  ASSERT_TRUE(make_folder(store_.folder() + "/" + attempt_name(5, 0)).ok());
  ASSERT_TRUE(make_folder(store_.folder() + "/" + attempt_name(15, 1)).ok());
  write_small_checkpoint(store_, 10);
  EXPECT_FALSE(fs::exists(store_.folder() + "/" + attempt_name(5, 0)));
  EXPECT_TRUE(fs::exists(store_.folder() + "/" + attempt_name(15, 1))) << "others may be at it";
  store_.give_up(15, 1);
  EXPECT_FALSE(fs::exists(store_.folder() + "/" + attempt_name(15, 1)));
}

TEST_F(AStore, KeepsOlderOnesWhereANewerOneCannotBeCompleted) {
  write_small_checkpoint(store_, 10, {.keep = 1});
  EXPECT_EQ(store_.complete({.step = 20}, 0).code(), Code::kResourceExhausted) << "nobody has written anything";
  EXPECT_THAT(store_.steps(), ElementsAre(10));
}

TEST_F(AStore, ReplacesACheckpointOfTheSameStep) {
  write_small_checkpoint(store_, 10);
  write_small_checkpoint(store_, 10);
  EXPECT_THAT(store_.steps(), ElementsAre(10));
  EXPECT_TRUE(newest().ok());
}

TEST_F(AStore, FindsTheNewestByTheResultsTheFolderOrTheCheckpointItself) {
  write_small_checkpoint(store_, 999999);
  write_small_checkpoint(store_, 1000000);
  for (const std::string& place : {folder_.path().string(), store_.folder(), store_.path_of(1000000)}) {
    const Result<FoundCheckpoint> found = newest(place);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->checkpoint.manifest().step, 1000000);
    EXPECT_THAT(found->passed_over, IsEmpty());
  }
  EXPECT_EQ(newest(store_.path_of(999999))->checkpoint.manifest().step, 999999);
}

TEST_F(AStore, PassesOverWhatIsNotWholeAndSaysWhy) {
  for (const std::int64_t step : {10, 20, 30, 40}) write_small_checkpoint(store_, step);
  fs::remove(fs::path(store_.path_of(40)) / kManifestFile);
  damage(30, kManifestFile);
  damage(20, "weights.safetensors");
  const Result<FoundCheckpoint> found = newest();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->checkpoint.manifest().step, 10);
  ASSERT_THAT(found->passed_over, SizeIs(3));
  EXPECT_THAT(found->passed_over[0], HasSubstr("step-000040 is passed over: "));
  EXPECT_THAT(found->passed_over[2], HasSubstr("weights.safetensors: 20 bytes instead of "));
}

TEST_F(AStore, WithNothingWholeSaysSo) {
  EXPECT_EQ(newest().status().code(), Code::kNotFound);
  write_small_checkpoint(store_, 10);
  damage(10, "weights.safetensors");
  EXPECT_EQ(newest().status().code(), Code::kDataLoss);
  EXPECT_THAT(newest().status().message(), HasSubstr("no checkpoint can be gone on from: "));
}

TEST_F(AStore, ShowsManifestsToWhoMayRefuseThem) {
  write_small_checkpoint(store_, 10);
  write_small_checkpoint(store_, 20);
  damage(20, "weights.safetensors");
  const auto refuse = [](const Manifest& manifest) {
    return Status::invalid_argument("another model: " + manifest.facts.at("model"));
  };
  const Result<FoundCheckpoint> found = newest_checkpoint(folder_.path(), small_forms(), refuse);
  EXPECT_EQ(found.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(found.status().message(), "another model: small");
}

}  // namespace
}  // namespace syncopate::experiments
