// What ranks of the library are told where they were given other options or rates: two processes.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "library/syncopate/syncopate.h"

namespace syncopate::api {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

std::string free_address() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t length = sizeof(address);
  EXPECT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ::close(listener);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

// What `body` returns on each of two ranks, in processes of their own.
std::array<std::string, 2> said_by_two(const std::function<std::string(Job& job, int rank)>& body) {
  const std::string address = free_address();
  std::array<int, 2> from{}, children{};
  for (int rank = 0; rank < 2; ++rank) {
    int pipe[2];
    EXPECT_EQ(::pipe(pipe), 0);
    const auto at = static_cast<std::size_t>(rank);
    from[at] = pipe[0];
    children[at] = ::fork();
    if (children[at] != 0) {
      ::close(pipe[1]);
      continue;
    }
    std::string text;
    {
      Result<Job> job = init({.rank = rank, .size = 2, .address = address, .timeout = std::chrono::seconds(60)});
      text = job.ok() ? body(*job, rank) : job.status().message();
      // So that nobody loses the other before it has been told.
      if (job.ok()) (void)job->collective().barrier();
    }
    const bool is_written = ::write(pipe[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(is_written ? 0 : 1);
  }
  std::array<std::string, 2> said;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    char bytes[4096];
    for (ssize_t count = 0; (count = ::read(from[rank], bytes, sizeof(bytes))) > 0;) {
      said[rank].append(bytes, static_cast<std::size_t>(count));
    }
    ::close(from[rank]);
    int status = 0;
    ::waitpid(children[rank], &status, 0);
    EXPECT_EQ(status, 0) << "rank " << rank;
  }
  return said;
}

ParamLayout two_tensors() {
  ParamLayout layout;
  layout.add("first", {40, 5});
  layout.add("second", {7});
  return layout;
}

TEST(TwoRanks, AreToldByNameWhatTheyWereGivenDifferently) {
  const auto told = [](const StrategyOptions& zero, const StrategyOptions& one) {
    const auto said = said_by_two(
        [&](Job& job, int rank) { return job.connect(two_tensors(), rank == 0 ? zero : one).status().message(); });
    EXPECT_EQ(said[0], said[1]);
    constexpr std::string_view kWhere = "connecting a strategy: ";
    EXPECT_THAT(said[0], testing::StartsWith(std::string(kWhere)));
    return said[0].substr(std::min(kWhere.size(), said[0].size()));
  };
  EXPECT_EQ(told({.compress = "int8"}, {.compress = "topk:0.01"}),
            "compress: int8 on rank 0, topk:0.01 on rank 1; all ranks must have the same");
  EXPECT_EQ(told({.optimizer = {.rule = "momentum"}}, {.optimizer = {.rule = "momentum", .momentum = 0.5}}),
            "momentum: 0.9 on rank 0, 0.5 on rank 1; all ranks must have the same");
  EXPECT_EQ(told({.mode = Mode::kParameterServers}, {}),
            "mode: parameter servers on rank 0, allreduce on rank 1; all ranks must have the same");
  EXPECT_EQ(told({.mode = Mode::kParameterServers}, {.mode = Mode::kParameterServers, .consistency = "async"}),
            "consistency: sync on rank 0, async on rank 1; all ranks must have the same");
}

// What finish_step says at last of steps at rate 0.1, but for rank 1's from step 2 on.
std::string train_at_two_rates(Job& job, int rank, const StrategyOptions& options) {
  Result<Strategy> strategy = job.connect(two_tensors(), options);
  if (!strategy.ok()) return strategy.status().message();
  if (Status joined = strategy->join(); !joined.ok()) return joined.message();
  for (int step = 0; step < 4; ++step) {
    strategy->begin_step(rank == 1 && step >= 2 ? 0.25 : 0.1);
    for (const std::size_t tensor : {0, 1}) strategy->gradient_ready(tensor);
    const Result<StepStats> stats = strategy->finish_step();
    if (stats.ok()) continue;
    (void)job.collective().barrier();  // servers end with the strategy of the rank that has started them
    return "step " + std::to_string(step) + ": " + stats.status().message();
  }
  return "nothing";
}

class TwoRates : public testing::TestWithParam<StrategyOptions> {};

TEST_P(TwoRates, AreToldInTheirFirstStep) {
  const auto said = said_by_two([](Job& job, int rank) { return train_at_two_rates(job, rank, GetParam()); });
  EXPECT_THAT(said[0], testing::StartsWith("step 2: "));
  EXPECT_THAT(said[0],
              AllOf(HasSubstr("rank 1 makes this step at a learning rate of 0.25"), HasSubstr("rank 0 at 0.1")));
  EXPECT_THAT(said[1], testing::StartsWith("step 2: "));
  EXPECT_THAT(said[1],
              AllOf(HasSubstr("rank 0 makes this step at a learning rate of 0.1"), HasSubstr("rank 1 at 0.25")));
}

// Each rank makes the update of a part, and all have the weights that one rank's whole update leads to.
TEST(TwoRanks, ShareAnUpdateThatHasTheBitsOfTheirOwn) {
  const auto weights_after = [](const std::string& update) {
    return said_by_two([&](Job& job, int rank) -> std::string {
      Result<Strategy> strategy = job.connect(two_tensors(), {.optimizer = {.rule = "adam"}, .update = update});
      if (!strategy.ok()) return strategy.status().message();
      for (std::size_t tensor = 0; tensor < 2; ++tensor) std::ranges::fill(strategy->weights(tensor), 0.5f);
      Status status = strategy->join();
      for (int step = 0; status.ok() && step < 3; ++step) {
        strategy->begin_step(0.1);
        for (std::size_t tensor = 2; tensor-- > 0;) {
          float value = 0.1f * static_cast<float>(rank - step);
          for (float& each : strategy->gradients(tensor)) each = value += 0.03f;
          strategy->gradient_ready(tensor);
        }
        status = strategy->finish_step().status();
      }
      std::string bits;
      for (std::size_t tensor = 0; tensor < 2; ++tensor) {
        for (const float each : strategy->weights(tensor)) bits.append(reinterpret_cast<const char*>(&each), 4);
      }
      if (status.ok()) status = strategy->leave();
      return status.ok() ? bits : status.message();
    });
  };
  const auto own = weights_after("own"), sharded = weights_after("sharded");
  EXPECT_EQ(own[0].size(), 207u * 4) << own[0];
  EXPECT_EQ(own[0], own[1]);
  EXPECT_EQ(sharded, own);
}

INSTANTIATE_TEST_SUITE_P(Modes, TwoRates,
                         testing::Values(StrategyOptions{}, StrategyOptions{.compress = "int8"},
                                         StrategyOptions{.bucket_bytes = 64},
                                         StrategyOptions{.mode = Mode::kParameterServers},
                                         StrategyOptions{.update = "sharded"}));

}  // namespace
}  // namespace syncopate::api
