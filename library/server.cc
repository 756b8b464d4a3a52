#include "library/server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sodium.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <iostream>
#include <istream>
#include <memory>
#include <mutex>
#include <ostream>
#include <thread>

#include "common/os/core_wait.h"
#include "common/os/signal_actions.h"
#include "common/text/log.h"
#include "common/transport/patient_transport.h"
#include "ps/server/shard_server.h"

namespace syncopate::library {
namespace {

Status read_number(const std::string& name, const std::string& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return Status();
  return Status::invalid_argument(fmt::format("{} {}: must be a whole number", name, text));
}

// Takes what the server is told, on a thread of its own.
class Orders {
 public:
  Orders(std::istream& in, ps::ShardServer& server, int workers) : server_(std::make_shared<Receiver>(&server)) {
    thread_ = std::thread([&in, server = server_, workers] { take(in, *server, workers); });
  }
  // The thread may wait for input that never comes, and then ends with the process.
  ~Orders() {
    const std::lock_guard lock(server_->mutex);
    server_->server = nullptr;
    if (thread_.joinable()) thread_.detach();
  }
  // Returns once the input has ended.
  void wait_for_end() { thread_.join(); }

 private:
  struct Receiver {
    explicit Receiver(ps::ShardServer* receiver) : server(receiver) {}

    std::mutex mutex;
    ps::ShardServer* server;  // null once it has gone; guarded by mutex
  };

  static void take(std::istream& in, Receiver& receiver, int workers) {
    for (std::string word; in >> word;) {
      int rank = -1;
      if (word != "lost" || !(in >> rank) || rank < 0 || rank >= workers) continue;
      const std::lock_guard lock(receiver.mutex);
      if (receiver.server != nullptr) receiver.server->worker_lost(rank);
    }
  }

  const std::shared_ptr<Receiver> server_;
  std::thread thread_;
};

Result<RunKeys> read_keys(std::istream& in) {
  std::string line;
  std::getline(in, line);
  Result<RunKeys> keys = RunKeys::parse(line);
  sodium_memzero(line.data(), line.size());
  return keys;
}

}  // namespace

Result<ServerPlan> ServerPlan::read(std::istream& in) {
  SYNCOPATE_ASSIGN_OR_RETURN(RunKeys keys, read_keys(in));
  ServerPlan plan{.keys = std::move(keys)};
  std::getline(in, plan.run_id);
  OptionTexts others;
  for (std::string line; std::getline(in, line) && line != "end";) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string name = line.substr(0, space);
    const std::string value = space < line.size() ? line.substr(space + 1) : "";
    int milliseconds = 0;
    if (name == "group") {
      plan.group = value;
    } else if (name == "parent") {
      SYNCOPATE_RETURN_IF_ERROR(read_number(name, value, plan.parent));
    } else if (name == "workers") {
      SYNCOPATE_RETURN_IF_ERROR(read_number(name, value, plan.workers));
    } else if (name == "server") {
      SYNCOPATE_RETURN_IF_ERROR(read_number(name, value, plan.server));
    } else if (name == "timeout_ms") {
      SYNCOPATE_RETURN_IF_ERROR(read_number(name, value, milliseconds));
      plan.timeout = std::chrono::milliseconds(milliseconds);
    } else if (name == "trace") {
      SYNCOPATE_ASSIGN_OR_RETURN(plan.trace, TracePlan::parse(value));
    } else if (name == "tells") {
      plan.tells = value == "1";
    } else if (name == "wire") {
      SYNCOPATE_ASSIGN_OR_RETURN(plan.wire, parse_wire(value));
    } else if (name == "address") {
      plan.address = value;
    } else if (name == "shape") {
      SYNCOPATE_ASSIGN_OR_RETURN(plan.shape, LinkShape::parse(value));
    } else {
      others[name] = value;
    }
  }
  if (!in) return Status::data_loss("standard input ended before the line 'end'");
  SYNCOPATE_ASSIGN_OR_RETURN(plan.options, TrainingOptions::parse(others, plan.workers));
  if (plan.server < 0 || plan.server >= plan.options.servers) {
    return Status::invalid_argument(fmt::format("server {} of {}", plan.server, plan.options.servers));
  }
  return plan;
}

Result<std::vector<std::string>> ParentRendezvous::exchange(const std::string& group, int /*rank*/, int size,
                                                            const std::string& value, TimePoint /*deadline*/) {
  out_ << group << ' ' << value << '\n' << std::flush;
  std::vector<std::string> values(static_cast<std::size_t>(size));
  for (std::string& each : values) std::getline(in_, each);
  if (!in_) return Status::cancelled("the rank that started this server has ended, or could not meet the others");
  return values;
}

Result<ToldServer> serve(const ServerPlan& plan, Rendezvous& others, std::istream& orders, ToldTrace& traced,
                         const ps::UpdateFunction* function) {
  if (plan.options.python != (function != nullptr)) {
    return Status::invalid_argument(
        "a server is to run an optimizer of Python's, and is another program, or is not to");
  }
  ProvenRendezvous rendezvous(others, plan.keys);
  const SteadyClock clock;
  const std::unique_ptr<Tracer> tracer = plan.trace ? plan.trace->make_tracer(clock) : nullptr;
  const auto patience = std::make_shared<Patience>();
  patience->set_timeout(plan.timeout);
  const ps::PsGroup members{.workers = plan.workers, .servers = plan.options.servers};
  TransportOptions endpoint{.run_id = plan.run_id,
                            .group = plan.group,
                            .rank = members.rank_of_shard(plan.server),
                            .size = members.size(),
                            .keys = plan.keys,
                            .patience = patience};
  reach_other_hosts(endpoint, plan.address);
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::unique_ptr<Transport> connected,
      make_transport(wire_to_servers(plan.wire), endpoint, rendezvous, clock.now() + plan.timeout));
  if (plan.shape) {
    connected = std::make_unique<ShapedTransport>(std::move(connected), std::make_shared<ProcessLink>(*plan.shape));
  }
  PatientTransport transport(std::move(connected), patience, clock);
  ps::ShardServer server({.group = members,
                          .consistency = plan.options.consistency,
                          .optimizer = plan.options.optimizer,
                          .compression = {.codec = plan.options.codec},
                          .agrees_on_rates = true,
                          .timeout = plan.timeout,
                          .function = function,
                          .tracer = tracer.get()},
                         transport, clock);
  Orders listening(orders, server, plan.workers);
  const std::optional<CoreWait> core_wait = CoreWait::of_this_thread();
  const Duration before = core_wait ? core_wait->total() : Duration::zero();
  SYNCOPATE_RETURN_IF_ERROR(server.serve());
  if (tracer) {
    Tracer::Recorded recorded = tracer->take();
    traced = {.server = plan.server, .events = std::move(recorded.events), .dropped = recorded.dropped};
  }
  const std::optional<Duration> waited = core_wait ? std::optional(core_wait->total() - before) : std::nullopt;
  const ToldServer told{.server = plan.server,
                        .figures = ps::figures_of(server.counters(), transport.counters(), waited)};
  listening.wait_for_end();
  return told;
}

int run_server(const ps::UpdateFunction* function) {
  // It ends with the rank that has started it, however that ends, and not by Ctrl-C, which a terminal sends to both.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_IGN);
  let_writes_fail();
  Result<ServerPlan> plan = ServerPlan::read(std::cin);
  Status status = plan.status();
  if (status.ok()) {
    start_log(fmt::format("server {}", plan->server), "syncopate %n: %v");
    if (getppid() != plan->parent) return 1;  // it was gone before
    ParentRendezvous rendezvous(std::cin, std::cout);
    ToldTrace traced;
    const Result<ToldServer> told = serve(*plan, rendezvous, std::cin, traced, function);
    status = told.status();
    if (told.ok() && plan->tells) std::cout << traced_lines(traced) << served_line(*told) << std::flush;
  }
  if (status.ok()) return 0;
  log_error("{}", status.message());
  return 1;
}

std::string served_line(const ToldServer& told) {
  return fmt::format("served {} {}\n", told.server, fmt::join(bits_of(told.figures), " "));
}

std::string traced_lines(const ToldTrace& told) {
  std::string lines;
  for (const TraceEvent& event : told.events) lines += fmt::format("traced {}\n", fmt::join(numbers_of(event), " "));
  if (told.dropped > 0) lines += fmt::format("untraced {}\n", told.dropped);
  return lines;
}

}  // namespace syncopate::library
