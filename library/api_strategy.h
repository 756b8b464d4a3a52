// What stands behind api::Strategy: it holds a caller to the order of calls, and the servers as long as they are
// needed.
#pragma once

#include <memory>
#include <string>

#include "library/api_state.h"
#include "library/gradient_watch.h"
#include "library/server_processes.h"
#include "library/strategy_exchange.h"

namespace syncopate::api {

struct Strategy::Impl {
  // An operation of all ranks; `name` is used once in a job.
  static Result<std::unique_ptr<Impl>> connect(const std::shared_ptr<Meeting>& meeting, const std::string& name,
                                               const ParamLayout& layout, const StrategyOptions& options);

  enum class Phase { kConnected, kBetweenSteps, kInStep, kOver };

  // Keeps the first misuse of a step.
  void misuse(const std::string& text);
  // Fails with invalid argument unless it is in `expected`.
  Status check(Phase expected, const char* call) const;
  Status status(const ::syncopate::Status& status, const char* operation, std::int64_t step = -1) const;
  // Waits until all ranks have left. Then ends those servers that this rank has started.
  ::syncopate::Status end_servers();

  std::shared_ptr<Meeting> meeting;
  std::string name;  // of the strategy in its job
  bool has_servers = false;
  ::syncopate::ParamLayout layout;
  std::unique_ptr<library::ServerProcesses> servers;    // those that this rank starts
  std::unique_ptr<library::StrategyExchange> exchange;  // ends before its servers
  Phase phase = Phase::kConnected;
  std::int64_t step = 0;
  Status misused;  // in this step
  library::GradientWatch watch{0};
};

}  // namespace syncopate::api
