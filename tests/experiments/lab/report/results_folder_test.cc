#include "experiments/lab/report/results_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kThreads = 8;

class ResultsFolderTest : public testing::Test {
 protected:
  Result<ResultsFolder> take() const {
    return ResultsFolder::take(path_, [this] { return check_holds_nothing(path_); });
  }
  // Calls `work` in several threads at once.
  template <typename Work>
  static void at_once(const Work& work) {
    std::barrier start(kThreads);
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        work();
      });
    }
  }

  const testing_support::TemporaryFolder folder_;
  const std::string path_ = (folder_.path() / "results/run").string();
};

TEST_F(ResultsFolderTest, IsOfOneAtATime) {
  const Result<ResultsFolder> first = take();
  ASSERT_TRUE(first.ok()) << first.status().message();
  const Status second = take().status();
  EXPECT_EQ(second.code(), Code::kInvalidArgument);
  EXPECT_THAT(second.message(), HasSubstr("another run is writing there"));
}

TEST_F(ResultsFolderTest, IsOfExactlyOneOfThoseWhoWantItAtOnce) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> taken = 0;
    at_once([&] {
      const Result<ResultsFolder> mine = take();
      if (!mine.ok()) return;
      ++taken;
      std::ofstream(path_ + "/summary.json") << "{}";
    });
    ASSERT_EQ(taken, 1) << "round " << round;
    EXPECT_THAT(names_in(path_), ElementsAre("summary.json"));
    fs::remove_all(path_);
  }
}

TEST_F(ResultsFolderTest, LeavesNothingOfItsOwn) {
  ASSERT_TRUE(take().ok());
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(ResultsFolderTest, CanBeTakenOnceItsOwnerWasKilled) {
  fs::create_directories(path_);
  std::ofstream(path_ + "/" + std::string(kFolderLock));
  const Result<ResultsFolder> taken = take();
  EXPECT_TRUE(taken.ok()) << taken.status().message();
}

TEST_F(ResultsFolderTest, IsLeftAloneWhereItHoldsFiles) {
  fs::create_directories(path_);
  std::ofstream(path_ + "/notes.txt");
  EXPECT_THAT(take().status().message(), HasSubstr("holds files already"));
  EXPECT_FALSE(fs::exists(path_ + "/" + std::string(kFolderLock)));
}

TEST_F(ResultsFolderTest, IsNoFile) {
  fs::create_directories(fs::path(path_).parent_path());
  std::ofstream(path_) << "a file";
  EXPECT_THAT(take().status().message(), HasSubstr("is no directory"));
}

TEST_F(ResultsFolderTest, HasANameOfItsOwnIfNobodyHasGivenOne) {
  std::vector<std::string> names(kThreads);
  {
    std::vector<std::optional<NewFolder>> folders(kThreads);
    std::atomic<std::size_t> next = 0;
    at_once([&] {
      Result<NewFolder> mine = NewFolder::create(path_);
      ASSERT_TRUE(mine.ok()) << mine.status().message();
      const std::size_t place = next++;
      names[place] = mine->path();
      std::ofstream(mine->path() + "/steps.csv");
      folders[place].emplace(std::move(*mine));
    });
  }
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  std::ranges::sort(names);
  EXPECT_EQ(names.front(), path_);
  EXPECT_EQ(names.back(), path_ + "-08");
  for (const std::string& name : names) EXPECT_TRUE(fs::exists(name + "/steps.csv")) << "it has been written to";
}

TEST_F(ResultsFolderTest, GoesAgainIfNothingWasWrittenUnderANameThatNobodyGave) {
  ASSERT_TRUE(NewFolder::create(path_).ok());
  EXPECT_FALSE(fs::exists(path_));
}

}  // namespace
}  // namespace syncopate::experiments
