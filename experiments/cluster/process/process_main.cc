#include "experiments/cluster/process/process_main.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/os/exhaustion.h"
#include "common/os/local_address.h"
#include "common/os/process_memory.h"
#include "common/os/resource_limits.h"
#include "common/os/signal_actions.h"
#include "common/os/socket_address.h"
#include "common/text/log.h"
#include "common/text/number.h"
#include "experiments/cluster/control/zmq_control_line.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/cluster/process/local_host.h"
#include "experiments/cluster/process/private_memory.h"
#include "experiments/cluster/process/roles.h"
#include "experiments/cluster/process/shared_keys.h"
#include "experiments/cluster/starter.h"
#include "experiments/config/toml.h"

namespace syncopate::experiments {
namespace {

// Used until the configuration has arrived, and with it the run's own timeout.
constexpr Duration kHelloTimeout = std::chrono::seconds(30);
// Threads that a process needs in any role. ZeroMQ ends a process that cannot create one.
constexpr int kThreads = 8;
// Training comes first, but an evaluation must also complete on a busy machine. The lowest priority, 19, would leave it
// about a hundredth of a core, too little to end within a run's timeout; this one leaves it about a tenth.
constexpr int kEvaluatorsNiceness = 10;
constexpr unsigned long kTimerSlackNanoseconds = 1000;

// Asks the kernel for what this role needs of it.
void ask_the_kernel(const ProcessIdentity& self, const ResolvedRun& config) {
  if (self.role == Role::kEvaluator) setpriority(PRIO_PROCESS, 0, kEvaluatorsNiceness);
  // The waits of a straggler would otherwise each be extended by up to 50 microseconds.
  if (self.role == Role::kWorker && is_slowed(config, self.rank)) {
    prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds);
  }
}

struct ProcessArguments {
  ProcessIdentity self;
  std::string address, run_id;
  int gpu = 0;
  bool shares_keys = false;  // as processes of mpirun do
};

Status put(std::string_view name, std::string_view value, ProcessArguments& arguments) {
  const auto put_number = [&](int& number) {
    const std::optional<int> parsed = parse_number<int>(value);
    if (!parsed) return Status::invalid_argument(fmt::format("{}={}: no number", name, value));
    number = *parsed;
    return Status();
  };
  if (name == "--role") {
    for (Role role : {Role::kWorker, Role::kServer, Role::kStandby, Role::kEvaluator}) {
      if (value != name_of(role)) continue;
      arguments.self.role = role;
      return Status();
    }
    return Status::invalid_argument(fmt::format("--role={}: no role", value));
  }
  if (name == "--rank") return put_number(arguments.self.rank);
  if (name == "--incarnation") return put_number(arguments.self.incarnation);
  if (name == "--gpu") return put_number(arguments.gpu);
  if (name == "--run") {
    arguments.run_id = value;
  } else if (name == "--rendezvous") {
    arguments.address = value;
  } else if (name == "--keys-shared" && value.empty()) {
    arguments.shares_keys = true;
  } else {
    return Status::invalid_argument(fmt::format("{}={}: no option of a process of a run", name, value));
  }
  return Status();
}

// Parses what the launcher writes: NAME=VALUE each, or NAME alone for a flag.
Result<ProcessArguments> parse_arguments(int argc, const char* const* argv) {
  ProcessArguments arguments;
  for (const std::string_view argument : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
    const std::size_t equals = std::min(argument.find('='), argument.size());
    const std::string_view value = argument.substr(std::min(equals + 1, argument.size()));
    if (const Status taken = put(argument.substr(0, equals), value, arguments); !taken.ok()) return taken;
  }
  if (arguments.run_id.empty() || arguments.address.empty()) {
    return Status::invalid_argument("a process of a run needs --run and --rendezvous: run_experiment starts it");
  }
  return arguments;
}

// Reads the line that the launcher has written to standard input, or shares.
Result<RunKeys> receive_keys(bool are_shared) {
  const Result<SecretText> line = are_shared ? shared_line() : line_on_stdin(SteadyClock().now() + kHelloTimeout);
  return line.ok() ? RunKeys::parse(line->view()) : Result<RunKeys>(line.status());
}

// Returns "10.0.0.7" for "tcp://10.0.0.7:4711", and "fd00::7" for "tcp://[fd00::7]:4711".
Result<std::string> host_of(const std::string& endpoint) {
  constexpr std::string_view kTcp = "tcp://";
  if (!endpoint.starts_with(kTcp)) return Status::invalid_argument("must begin with tcp:// or ipc:");
  SYNCOPATE_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::parse(endpoint.substr(kTcp.size())));
  return address.host();
}

// Data sockets listen where the control connection goes out from; on this host if that is a unix socket.
Result<DataSockets> data_sockets_of(const std::string& rendezvous, const RunKeys& keys) {
  if (rendezvous.starts_with("ipc:")) return DataSockets{.keys = keys};
  const Result<std::string> coordinator = host_of(rendezvous);
  const Result<std::string> address = coordinator.ok() ? local_address_towards(*coordinator) : coordinator;
  if (!address.ok()) return address.status().in("--rendezvous=" + rendezvous);
  return DataSockets{.keys = keys, .address = *address, .between_hosts = true};
}

Result<std::unique_ptr<ControlClient>> connect_control(const ProcessArguments& arguments, const ProcessIdentity& self,
                                                       const RunKeys& keys, Activity& activity, LocalHost& host) {
  return ControlClient::connect({.address = arguments.address,
                                 .run_id = arguments.run_id,
                                 .self = self,
                                 .make_line = zmq_control_line(arguments.address, keys, self),
                                 .threads = host.threads()},
                                activity, host.clock().now() + kHelloTimeout);
}

// The server that lives in the process of the worker of `context`, with a control connection of its own.
Status run_colocated_server(const ProcessArguments& arguments, const RunKeys& keys, LocalHost& host,
                            RoleContext context) {
  Activity activity;
  const ProcessIdentity self{.role = Role::kServer, .rank = context.rank, .incarnation = arguments.self.incarnation};
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<ControlClient> control,
                             connect_control(arguments, self, keys, activity, host));
  return take_part({.config = context.config,
                    .run_id = context.run_id,
                    .rank = context.rank,
                    .host = host,
                    .control = *control,
                    .activity = activity,
                    .sockets = context.sockets,
                    .role = self.role});
}

Status run_process(const ProcessArguments& arguments, const RunKeys& keys, const Accelerator* accelerator) {
  SYNCOPATE_ASSIGN_OR_RETURN(const DataSockets sockets, data_sockets_of(arguments.address, keys));
  const ProcessIdentity& self = arguments.self;
  Activity activity;
  LocalHost host;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<ControlClient> control,
                             connect_control(arguments, self, keys, activity, host));
  const Result<ResolvedRun> config = from_toml_text(control->config_toml());
  if (!config.ok()) {
    control->failed(config.status());
    return config.status();
  }
  ask_the_kernel(self, *config);
  const RoleContext context{.config = *config,
                            .run_id = arguments.run_id,
                            .rank = self.rank,
                            .host = host,
                            .control = *control,
                            .activity = activity,
                            .sockets = sockets,
                            .accelerator = accelerator,
                            .gpu = arguments.gpu,
                            .role = self.role};
  Status served;
  std::unique_ptr<Threads::Handle> server;
  if (self.role == Role::kWorker && is_colocated(*config)) {
    server = host.threads().start("server", [&] {
      served = caught([&] { return run_colocated_server(arguments, keys, host, context); });
      if (!served.ok()) log_error("server {}: {}: {}", self.rank, name_of(served.code()), served.message());
    });
  }
  const Status status = take_part(context);
  server.reset();  // waits for it
  return status.ok() ? served : status;
}

}  // namespace

bool is_process_command_line(int argc, const char* const* argv) {
  return argc > 1 && std::string_view(argv[1]).starts_with("--role=");
}

int process_main(int argc, const char* const* argv, const Accelerator* accelerator) {
  // A process must not outlive the one that started it, and only the coordinator handles what asks a run to end:
  // schedulers and service managers send it to all processes of a job.
  die_with_parent();
  signal(SIGINT, SIG_IGN);
  let_writes_fail();  // a reader that closes this process's output does not end it
  raise_descriptor_limit();
  keep_large_blocks();

  const Result<ProcessArguments> arguments = parse_arguments(argc, argv);
  if (!arguments.ok()) {
    fmt::print(stderr, "{}\n", arguments.status().message());
    return static_cast<int>(ExitCode::kUsage);
  }
  if (!arguments->shares_keys) {  // mpirun ends its processes by it
    for (const int signal_number : {SIGTERM, SIGHUP}) signal(signal_number, SIG_IGN);
  }
  const ProcessIdentity& self = arguments->self;
  start_log(fmt::format("{} {}", name_of(self.role), self.rank), "%Y-%m-%d %H:%M:%S.%e %n [%l] %v");

  if (!arguments->shares_keys) keep_memory_private();
  const Result<RunKeys> keys = receive_keys(arguments->shares_keys);
  Status status = keys.ok() ? check_threads(kThreads) : keys.status();
  if (status.ok()) {
    status = caught([&] { return run_process(*arguments, *keys, accelerator); });
  }
  if (status.ok()) return static_cast<int>(ExitCode::kSuccess);
  log_error("{}: {}", name_of(status.code()), status.message());
  return static_cast<int>(exit_code_of(status));
}

}  // namespace syncopate::experiments
