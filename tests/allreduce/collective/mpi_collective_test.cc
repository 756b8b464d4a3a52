// MpiCollective under a real mpirun: each test starts this very program again, once a rank, with what the ranks do.
#include "allreduce/collective/mpi_collective.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <thread>

#include "tests/support/slowness.h"

namespace syncopate::allreduce {
namespace {

using testing::HasSubstr;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""h;
using std::literals::chrono_literals::operator""s;

int number_of(const char* variable) { return std::atoi(std::getenv(variable)); }

class DISABLED_MpiRank : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(std::getenv("OMPI_COMM_WORLD_RANK"), nullptr) << "to be started by mpirun alone";
    auto made = make_mpi_collective(number_of("OMPI_COMM_WORLD_RANK"), number_of("OMPI_COMM_WORLD_SIZE"));
    ASSERT_TRUE(made.ok()) << made.status().message();
    mpi_ = std::move(*made);
  }
  TimePoint in(Duration time) const { return clock_.now() + time; }
  std::span<float> buffer(std::size_t elements) { return *mpi_->allocate(elements); }

  const SteadyClock clock_;
  std::unique_ptr<Collective> mpi_;
};

// What the test `name` above printed on all of `size` ranks, and how mpirun ended.
struct MpirunEnd {
  int status = -1;
  std::string output;
};
MpirunEnd run_ranks(const std::string& name, int size) {
  const std::string command = fmt::format(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 mpirun --oversubscribe --bind-to none "
      "--mca mpi_yield_when_idle 1 -n {} {} "
      "--gtest_filter=DISABLED_MpiRank.{} "
      "--gtest_also_run_disabled_tests --gtest_color=no 2>&1",
      size, std::filesystem::read_symlink("/proc/self/exe").string(), name);
  MpirunEnd end;
  FILE* output = popen(command.c_str(), "r");
  char text[4096];
  for (std::size_t count = 0; (count = fread(text, 1, sizeof(text), output)) > 0;) end.output.append(text, count);
  end.status = pclose(output);
  return end;
}

class MpiCollective : public testing::Test {
 protected:
  void SetUp() override {
    if (testing_support::kSanitized) GTEST_SKIP() << testing_support::kWhyNoMpi;
  }
};

// Whole numbers, so that sums are exact in every order; sizes around a piece, and of several.
TEST_F(DISABLED_MpiRank, SumsExactly) {
  const int size = mpi_->size(), rank = mpi_->rank();
  for (std::size_t elements : {1ul, 1000ul, (1ul << 18) - 1, (1ul << 18) + 1, (3ul << 18) + 5}) {
    const std::span<float> part = buffer(elements);
    for (std::size_t i = 0; i < elements; ++i) part[i] = static_cast<float>(i % 1000) + static_cast<float>(rank);
    ASSERT_TRUE(mpi_->all_reduce(part, in(60s)).ok());
    for (std::size_t i = 0; i < elements; ++i) {
      ASSERT_EQ(part[i],
                static_cast<float>(size) * static_cast<float>(i % 1000) + static_cast<float>(size * (size - 1) / 2));
    }
    std::iota(part.begin(), part.end(), rank == size - 1 ? 7.0f : 0.0f);
    ASSERT_TRUE(mpi_->broadcast(part, size - 1, in(60s)).ok());
    for (std::size_t i = 0; i < elements; ++i) ASSERT_EQ(part[i], static_cast<float>(i) + 7);
    for (std::size_t i = 0; i < elements; ++i) part[i] = static_cast<float>(i % 1000) + static_cast<float>(rank);
    ASSERT_TRUE(mpi_->reduce_scatter(part, in(60s)).ok());
    const Range own = mpi_->own_part(elements);
    std::fill(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(own.begin), -1.0f);
    std::fill(part.begin() + static_cast<std::ptrdiff_t>(own.end), part.end(), -1.0f);
    ASSERT_TRUE(mpi_->all_gather(part, in(60s)).ok());
    for (std::size_t i = 0; i < elements; ++i) {
      ASSERT_EQ(part[i],
                static_cast<float>(size) * static_cast<float>(i % 1000) + static_cast<float>(size * (size - 1) / 2));
    }
  }
  if (rank < 2) {
    const std::span<float> part = buffer((1ul << 18) + 5);
    std::fill(part.begin(), part.end(), static_cast<float>(rank + 1));
    ASSERT_TRUE(mpi_->reduce_pair(part, 1 - rank, in(60s)).ok());
    EXPECT_EQ(part.front(), 3.0f);
    EXPECT_EQ(part.back(), 3.0f);
  }
  ASSERT_TRUE(mpi_->barrier(in(60s)).ok());
}

TEST_F(MpiCollective, SumsAndBroadcastsExactlyAlsoWithManyMoreRanksThanCores) {
  for (int size : {2, 3, 8}) {
    const MpirunEnd end = run_ranks("SumsExactly", size);
    EXPECT_EQ(end.status, 0) << end.output;
  }
}

// Rank a gives rank b (a + 2·b) · 100'001 bytes, so that rank 0 gives itself, and nobody else, nothing.
TEST_F(DISABLED_MpiRank, GivesEachRankItsOwn) {
  const auto size = static_cast<std::size_t>(mpi_->size()), rank = static_cast<std::size_t>(mpi_->rank());
  const auto length = [](std::size_t from, std::size_t to) { return (from + 2 * to) * 100'001; };
  const auto value = [](std::size_t from, std::size_t to, std::size_t i) {
    return static_cast<std::byte>(from * 31 + to * 7 + i);
  };
  std::vector<Bytes> given, taken(size);
  for (std::size_t to = 0; to < size; ++to) {
    const auto bytes = std::as_writable_bytes(buffer(length(rank, to) / 4 + 1)).first(length(rank, to));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = value(rank, to, i);
    given.push_back(bytes);
  }
  for (int round = 0; round < 3; ++round) {
    const Status status = mpi_->all_to_all(given, taken, in(60s));
    ASSERT_TRUE(status.ok()) << status.message();
    for (std::size_t from = 0; from < size; ++from) {
      ASSERT_EQ(taken[from].size(), length(from, rank));
      for (std::size_t i = 0; i < taken[from].size(); ++i) ASSERT_EQ(taken[from][i], value(from, rank, i));
    }
  }
}

TEST_F(MpiCollective, GivesEachRankWhatIsMeantForIt) {
  for (int size : {1, 2, 5}) {
    const MpirunEnd end = run_ranks("GivesEachRankItsOwn", size);
    EXPECT_EQ(end.status, 0) << end.output;
  }
}

// Rank 1 comes to no operation: it waits in MPI_Finalize, for rank 0 to end.
TEST_F(DISABLED_MpiRank, IsLeftAlone) {
  if (mpi_->rank() == 1) return;
  const TimePoint begin = clock_.now();
  const Status status = mpi_->all_reduce(buffer(1000), in(300ms));
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.message();
  EXPECT_GE(clock_.now() - begin, 300ms);
  EXPECT_LT(clock_.now() - begin, 30s);
  EXPECT_EQ(mpi_->barrier(in(60s)).code(), Code::kCancelled);
  mpi_.reset();
  fmt::print("rank 0 has come to its end\n");
}

TEST_F(MpiCollective, KeepsItsDeadlineAndEndsWithoutWaitingForWhoDidNotCome) {
  const MpirunEnd end = run_ranks("IsLeftAlone", 2);
  EXPECT_THAT(end.output, HasSubstr("rank 0 has come to its end\n[       OK ]"));
  EXPECT_NE(end.status, 0) << "mpirun takes it for a failure";
}

TEST_F(DISABLED_MpiRank, IsInterrupted) {
  if (mpi_->rank() == 1) return;
  std::jthread other([this] {
    std::this_thread::sleep_for(100ms);  // well into the wait; before it would do as well
    mpi_->interrupt();
  });
  const Status status = mpi_->barrier(in(1h));
  EXPECT_EQ(status.code(), Code::kCancelled) << status.message();
  EXPECT_EQ(mpi_->broadcast(buffer(10), 0, in(1h)).code(), Code::kCancelled);
  mpi_.reset();
  fmt::print("rank 0 has come to its end\n");
}

TEST_F(MpiCollective, IsInterruptedWhileItWaits) {
  EXPECT_THAT(run_ranks("IsInterrupted", 2).output, HasSubstr("rank 0 has come to its end\n[       OK ]"));
}

}  // namespace
}  // namespace syncopate::allreduce
