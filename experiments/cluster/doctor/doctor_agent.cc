#include "experiments/cluster/doctor/doctor_agent.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/os/local_address.h"
#include "common/os/signal_actions.h"
#include "experiments/cluster/doctor/line_reader.h"
#include "experiments/cluster/doctor/pair_measurement.h"
#include "experiments/cluster/host/host_limits.h"
#include "experiments/cluster/host/host_report.h"
#include "experiments/cluster/process/private_memory.h"
#include "experiments/cluster/process/shared_keys.h"
#include "experiments/cluster/starter.h"

namespace syncopate::experiments {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kAgent = "--doctor-agent", kTowards = "--towards=", kGpus = "--gpus";
// Nobody keeps an agent waiting for longer.
constexpr Duration kPatience = std::chrono::minutes(2);
constexpr Duration kMost = std::chrono::minutes(1);

void say(const std::string& line) {
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

void say(const Json& json) { say(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"); }

// The two members tell each other their addresses by way of the one who asks.
class AskedRendezvous final : public Rendezvous {
 public:
  explicit AskedRendezvous(LineReader& input) : input_(input) {}

  Result<std::vector<std::string>> exchange(const std::string&, int, int size, const std::string& value,
                                            TimePoint deadline) override {
    say(Json{{"address", value}});
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string line, input_.next(deadline));
    const Json json = Json::parse(line, nullptr, false);
    const bool fits = json.is_object() && json.contains("members") && json["members"].is_array() &&
                      json["members"].size() == static_cast<std::size_t>(size);
    if (!fits) return Status::peer_lost("the other host has no address");
    return json["members"].get<std::vector<std::string>>();
  }

 private:
  LineReader& input_;
};

Duration milliseconds_in(const Json& json, const char* name) {
  return std::min<Duration>(std::chrono::milliseconds(json.at(name).get<std::int64_t>()), kMost);
}

void measure(const Json& request, const std::string& address, const RunKeys& keys, LineReader& input) {
  AskedRendezvous rendezvous(input);
  const PairOptions options{.rank = request.at("rank").get<int>() == 0 ? 0 : 1,
                            .group = request.at("pair"),
                            .address = address,
                            .keys = keys,
                            .sending = milliseconds_in(request, "sending_ms")};
  const Result<PairFigures> figures =
      measure_pair(options, rendezvous, SteadyClock().now() + milliseconds_in(request, "limit_ms"));
  if (!figures.ok()) return say(Json{{"failed", figures.status().message()}});
  say(Json{{"latency_us", figures->latency_us}, {"bytes_per_second", figures->bytes_per_second}});
}

void say_the_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  say(Json{{"wall_ns", std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()}});
}

// Does what it is told until nobody tells it any more.
int serve(const RunKeys& keys, const std::string& address) {
  LineReader input(STDIN_FILENO);
  while (true) {
    const Result<std::string> line = input.next(SteadyClock().now() + kPatience);
    if (!line.ok()) return line.status().code() == Code::kPeerLost ? 0 : 1;
    const Json request = Json::parse(*line, nullptr, false);
    try {
      if (request.contains("clock")) say_the_time();
      if (request.contains("pair")) measure(request, address, keys, input);
    } catch (const Json::exception& error) {
      say(Json{{"failed", error.what()}});
    }
  }
}

}  // namespace

std::vector<std::string> doctor_agent_arguments(bool with_gpus, const std::string& towards) {
  std::vector<std::string> arguments{std::string(kAgent), std::string(kTowards) + towards};
  if (with_gpus) arguments.emplace_back(kGpus);
  return arguments;
}

bool is_doctor_agent_command_line(int argc, const char* const* argv) { return argc > 1 && argv[1] == kAgent; }

int doctor_agent_main(int argc, const char* const* argv) {
  let_writes_fail();
  keep_memory_private();
  bool with_gpus = false;
  std::string towards;
  for (const std::string_view argument : std::vector<std::string_view>(argv + 2, argv + argc)) {
    with_gpus |= argument == kGpus;
    if (argument.starts_with(kTowards)) towards = argument.substr(kTowards.size());
  }
  const Result<SecretText> line = line_on_stdin(SteadyClock().now() + kPatience);
  const Result<RunKeys> keys = line.ok() ? RunKeys::parse(line->view()) : Result<RunKeys>(line.status());
  if (!keys.ok()) {
    fmt::print(stderr, "{}\n", keys.status().message());
    return kNotStarted;
  }
  const HostReport report = this_host(with_gpus, towards);
  say(to_json_line(report) + to_json_line(limits_here(report.interface)));
  const Result<std::string> own = local_address_towards(towards);
  return serve(*keys, own.ok() ? *own : "127.0.0.1");
}

}  // namespace syncopate::experiments
