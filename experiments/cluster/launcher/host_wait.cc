#include "experiments/cluster/launcher/host_wait.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <thread>
#include <utility>

#include "experiments/cluster/launcher/remote_question.h"

namespace syncopate::experiments {
namespace {

constexpr std::chrono::milliseconds kPause(1000);  // between two attempts

// Tries all hosts at once. Returns those that were not reached, each with why.
Result<std::vector<std::pair<std::string, std::string>>> missing_of(const RemoteShell& shell,
                                                                    const std::vector<std::string>& hosts,
                                                                    TimePoint deadline) {
  std::vector<RemoteQuestion> questions;
  for (const std::string& host : hosts) questions.emplace_back(shell, host, "true");
  std::vector<std::pair<std::string, std::string>> missing;
  for (RemoteQuestion& question : questions) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> status, question.status_before(deadline));
    if (status == 0) continue;
    const std::string line = question.last_line();
    missing.emplace_back(question.host(), status ? line.empty() ? "the remote shell failed without a word" : line
                                                 : "the remote shell has not answered");
  }
  return missing;
}

}  // namespace

Status wait_for_hosts(const RemoteShell& shell, std::vector<std::string> hosts, Duration longest) {
  const TimePoint deadline = SteadyClock().now() + longest;
  while (true) {
    SYNCOPATE_ASSIGN_OR_RETURN(const auto missing, missing_of(shell, hosts, deadline));
    if (missing.empty()) return {};
    if (SteadyClock().now() + kPause >= deadline) {
      std::vector<std::string> wrong;
      for (const auto& [host, why] : missing) wrong.push_back(fmt::format("host {}: {}", host, why));
      return Status::invalid_argument(
          fmt::format("not reached within {:.3g} s: {}", seconds(longest), fmt::join(wrong, "; ")));
    }
    hosts.clear();
    for (const auto& [host, why] : missing) hosts.push_back(host);
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace syncopate::experiments
