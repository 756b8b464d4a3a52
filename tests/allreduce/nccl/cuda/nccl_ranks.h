// Ranks of an NCCL group as processes, for tests: CUDA cannot be used by a process that was forked after its parent had
// called it, so that the test's own process never does.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "allreduce/nccl/cuda/nccl_collective.h"
#include "allreduce/nccl/nccl_environment.h"
#include "common/device/cuda/cuda_device.h"
#include "tests/support/board_rendezvous.h"

namespace syncopate::testing_support {

class NcclRanks {
 public:
  // What one rank has at hand: the GPU of its number, or the first one where there are not so many. Its environment is
  // nccl_environment's for ranks that share one.
  struct Place {
    int rank;
    Device& device;
    Rendezvous& rendezvous;
    allreduce::NcclOptions options;
  };
  // Returns what went wrong, or nothing.
  using Body = std::function<std::string(Place& place)>;

  // Forks up to 8 ranks, each of which opens its GPU and runs the body.
  NcclRanks(int size, bool direct_calls, const Body& body) {
    for (int rank = 0; rank < size; ++rank) {
      const pid_t child = fork();
      if (child == 0) {
        std::string text = run(rank, size, direct_calls, body);
        // A failure is of this process alone; the test's own must hear of it.
        if (text.empty() && testing::Test::HasFailure()) text = "a check has failed in the rank, as said above";
        std::copy_n(text.begin(), std::min(text.size(), sizeof(Text) - 1), texts_[rank]);
        _exit(0);
      }
      children_.push_back(child);
    }
  }
  // Kills those that are still there.
  ~NcclRanks() {
    for (const pid_t child : children_) {
      if (child == 0) continue;
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    munmap(texts_, kMaxRanks * sizeof(Text));
  }
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  // How the rank ended, within two minutes: its body's answer; "no GPU: ..." where there is none for it; or "killed by
  // signal 9", say. Once a rank.
  std::string end_of(int rank) {
    const SteadyClock clock;
    const TimePoint deadline = clock.now() + std::chrono::minutes(2);
    int status = 0;
    while (waitpid(children_[rank], &status, WNOHANG) == 0) {
      if (clock.now() >= deadline) return "still running after two minutes";
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    children_[rank] = 0;
    if (WIFSIGNALED(status)) return fmt::format("killed by signal {}", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) return fmt::format("exit code {}", WEXITSTATUS(status));
    return texts_[rank];
  }

 private:
  static constexpr int kMaxRanks = 8;
  using Text = char[2048];

  std::string run(int rank, int size, bool direct_calls, const Body& body) {
    for (const auto& [name, value] :
         allreduce::nccl_environment({.rank = rank, .shares_gpu = true, .direct_calls = direct_calls})) {
      setenv(name.c_str(), value.c_str(), 1);
    }
    Result<std::unique_ptr<Device>> device = open_cuda_device(rank);
    if (!device.ok() && rank != 0) device = open_cuda_device(0);
    if (!device.ok()) {
      const bool none = device.status().code() == Code::kNotFound;
      return fmt::format("{}: {}", none ? "no GPU" : "the GPU cannot be used", device.status().message());
    }
    Place place{.rank = rank,
                .device = **device,
                .rendezvous = rendezvous_,
                .options = {.rank = rank, .size = size, .direct_calls = direct_calls}};
    return body(place);
  }

  BoardRendezvous rendezvous_;
  // Shared with the ranks.
  Text* const texts_ = static_cast<Text*>(
      mmap(nullptr, kMaxRanks * sizeof(Text), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> children_;  // 0: has ended
};

}  // namespace syncopate::testing_support
