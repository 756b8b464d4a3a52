#include "library/api_strategy.h"

#include <fmt/format.h>

#include <utility>

#include "common/group_limits.h"
#include "library/installed_server.h"
#include "library/option_agreement.h"
#include "library/training_options.h"

namespace syncopate::api {
namespace {

constexpr std::size_t kUsualServerBucket = std::size_t{1} << 18;

void set(library::OptionTexts& texts, const char* name, const std::optional<double>& value) {
  if (value) texts[name] = fmt::format("{}", *value);
}

// As a server's plan and TrainingOptions::parse have them.
library::OptionTexts texts_of(const StrategyOptions& options) {
  library::OptionTexts texts{{"optimizer", options.optimizer.rule}};
  set(texts, "momentum", options.optimizer.momentum);
  set(texts, "beta1", options.optimizer.beta1);
  set(texts, "beta2", options.optimizer.beta2);
  set(texts, "rho", options.optimizer.rho);
  set(texts, "epsilon", options.optimizer.epsilon);
  set(texts, "weight_decay", options.optimizer.weight_decay);
  set(texts, "initial_accumulator", options.optimizer.initial_accumulator);
  set(texts, "l1", options.optimizer.l1);
  set(texts, "l2", options.optimizer.l2);
  set(texts, "beta", options.optimizer.beta);
  if (!options.compress.empty()) texts["compress"] = options.compress;
  if (options.bucket_bytes > 0) texts["bucket_bytes"] = std::to_string(options.bucket_bytes);
  if (options.update == "sharded") texts["sharded"] = "1";
  if (options.mode == Mode::kAllReduce) {
    if (options.consistency != "sync") texts["consistency"] = options.consistency;
    return texts;
  }
  texts["servers"] = std::to_string(options.servers);
  texts["consistency"] = options.consistency;
  texts.try_emplace("bucket_bytes", std::to_string(kUsualServerBucket));
  return texts;
}

::syncopate::Result<OnNan> on_nan_of(const StrategyOptions& options) {
  for (const OnNan known : {OnNan::kStop, OnNan::kGoOn}) {
    if (options.on_nan == name_of(known)) return known;
  }
  if (options.on_nan.empty()) return OnNan::kGoOn;
  return ::syncopate::Status::invalid_argument(fmt::format("on_nan='{}': must be stop or go-on", options.on_nan));
}

}  // namespace

Result<std::unique_ptr<Strategy::Impl>> Strategy::Impl::connect(const std::shared_ptr<Meeting>& meeting,
                                                                const std::string& name, const ParamLayout& layout,
                                                                const StrategyOptions& options) {
  static constexpr const char* kConnecting = "connecting a strategy";
  const bool has_servers = options.mode == Mode::kParameterServers;
  if (has_servers && options.servers < 1) {
    return Status(Code::kInvalidArgument,
                  fmt::format("servers={}: parameter servers must be 1 to {}", options.servers, kMostServers));
  }
  if (!has_servers && (options.servers != 1 || !options.server_program.empty())) {
    return Status(Code::kInvalidArgument, "servers and server_program are for parameter servers: leave them out");
  }
  if (!options.update.empty() && options.update != "own" && options.update != "sharded") {
    return Status(Code::kInvalidArgument, fmt::format("update='{}': must be own or sharded", options.update));
  }
  const library::OptionTexts texts = texts_of(options);
  const auto parsed = library::TrainingOptions::parse(texts, meeting->group->size());
  if (!parsed.ok()) return status_of(parsed.status(), kConnecting);
  const auto on_nan = on_nan_of(options);
  if (!on_nan.ok()) return status_of(on_nan.status(), kConnecting);
  auto own_layout = engine_layout(layout);
  if (!own_layout.ok()) return status_of(own_layout.status(), kConnecting);

  library::OptionTexts agreed = parsed->texts();
  agreed["mode"] = has_servers ? "parameter servers" : "allreduce";
  if (const auto alike = library::agree_on_options(*meeting->group, name, agreed); !alike.ok()) {
    return status_of(alike, *meeting->group, kConnecting);
  }

  auto impl = std::make_unique<Impl>();
  impl->meeting = meeting;
  impl->name = name;
  impl->has_servers = has_servers;
  impl->layout = std::move(*own_layout);
  impl->watch = library::GradientWatch(meeting->group->rank(), *on_nan);
  if (has_servers && !meeting->group->servers_to_start(options.servers).empty()) {
    auto servers = library::ServerProcesses::start(
        *meeting->group, *meeting->rendezvous,
        {.program = options.server_program.empty() ? library::installed_server() : options.server_program,
         .name = name,
         .servers = options.servers,
         .training = texts});
    if (!servers.ok()) return impl->status(servers.status(), "starting parameter servers");
    impl->servers = std::move(*servers);
  }
  auto exchange = library::StrategyExchange::connect(
      group_of(meeting), name, impl->layout, *parsed,
      impl->servers ? impl->servers->started() : std::vector<library::StartedServer>());
  if (!exchange.ok()) return impl->status(exchange.status(), kConnecting);
  impl->exchange = std::move(*exchange);
  return impl;
}

// Only once no rank of any host watches them any more: to one that does, a server that has ended is lost.
::syncopate::Status Strategy::Impl::end_servers() {
  library::Group& group = *meeting->group;
  const auto all =
      group.rendezvous().exchange(fmt::format("{}/left", name), group.rank(), group.size(), "", group.deadline());
  return all.ok() && servers ? servers->end(group.deadline()) : all.status();
}

Status Strategy::Impl::status(const ::syncopate::Status& status, const char* operation, std::int64_t in_step) const {
  return status_of(status, *meeting->group, operation, in_step, exchange ? exchange->missed() : -1);
}

void Strategy::Impl::misuse(const std::string& text) {
  if (misused.ok()) misused = Status(Code::kInvalidArgument, text);
}

Status Strategy::Impl::check(Phase expected, const char* call) const {
  if (phase == expected) return Status();
  static constexpr const char* kWhere[] = {"before join()", "between steps", "within a step",
                                           "after leave() or a failure"};
  return Status(Code::kInvalidArgument, fmt::format("{} {}: it belongs {}", call, kWhere[static_cast<int>(phase)],
                                                    kWhere[static_cast<int>(expected)]));
}

Strategy::Strategy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Strategy::Strategy(Strategy&& other) noexcept = default;
Strategy& Strategy::operator=(Strategy&& other) noexcept = default;
Strategy::~Strategy() = default;

std::span<float> Strategy::weights(std::size_t tensor) { return impl_->exchange->weights(tensor); }
std::span<float> Strategy::gradients(std::size_t tensor) { return impl_->exchange->gradients(tensor); }

Status Strategy::join() {
  if (Status status = impl_->check(Impl::Phase::kConnected, "join()"); !status.ok()) return status;
  const ::syncopate::Status joined = impl_->exchange->join();
  impl_->phase = joined.ok() ? Impl::Phase::kBetweenSteps : Impl::Phase::kOver;
  return impl_->status(joined, "joining a strategy");
}

void Strategy::begin_step(double learning_rate) {
  if (Status status = impl_->check(Impl::Phase::kBetweenSteps, "begin_step()"); !status.ok()) {
    return impl_->misuse(status.message());
  }
  impl_->phase = Impl::Phase::kInStep;
  if (const auto rate = impl_->exchange->check_rate(learning_rate); !rate.ok()) return impl_->misuse(rate.message());
  impl_->exchange->begin_step(learning_rate);
  impl_->watch.begin_step(impl_->step);
}

void Strategy::gradient_ready(std::size_t tensor) {
  if (Status status = impl_->check(Impl::Phase::kInStep, "gradient_ready()"); !status.ok()) {
    return impl_->misuse(status.message());
  }
  if (!impl_->misused.ok()) return;  // the step may not have begun
  if (tensor >= impl_->layout.tensors().size()) {
    return impl_->misuse(
        fmt::format("gradient_ready({}): tensors are 0 to {}", tensor, impl_->layout.tensors().size() - 1));
  }
  if (impl_->exchange->has(tensor)) {
    return impl_->misuse(fmt::format("gradient_ready({}), '{}', was called before in this step", tensor,
                                     impl_->layout.tensors()[tensor].name));
  }
  impl_->watch.look_at(impl_->layout.tensors()[tensor].name, impl_->exchange->gradients(tensor));
  if (!impl_->watch.holds_back()) impl_->exchange->gradient_in_place(tensor);
}

Result<StepStats> Strategy::finish_step() {
  if (Status status = impl_->check(Impl::Phase::kInStep, "finish_step()"); !status.ok()) {
    return impl_->misused.ok() ? status : impl_->misused;
  }
  if (const ::syncopate::Status finite = impl_->watch.check(); !finite.ok()) {
    impl_->phase = Impl::Phase::kOver;
    return impl_->status(finite, "finishing a step", impl_->step);
  }
  for (std::size_t tensor = 0; impl_->misused.ok() && tensor < impl_->layout.tensors().size(); ++tensor) {
    if (impl_->exchange->has(tensor)) continue;
    impl_->misuse(
        fmt::format("finish_step() without the gradient of tensor {}, '{}': each takes part in each step, with "
                    "zeros if it has none",
                    tensor, impl_->layout.tensors()[tensor].name));
  }
  impl_->phase = Impl::Phase::kOver;
  if (!impl_->misused.ok()) return impl_->misused;
  const ::syncopate::Result<SyncStats> stats = impl_->exchange->finish_step();
  if (!stats.ok()) return impl_->status(stats.status(), "finishing a step", impl_->step);
  impl_->phase = Impl::Phase::kBetweenSteps;
  ++impl_->step;
  return StepStats{.wait_seconds = seconds(stats->exposed_wait),
                   .bytes_out = stats->bytes_out,
                   .bytes_in = stats->bytes_in,
                   .staleness = stats->staleness_mean};
}

Status Strategy::leave() {
  if (Status status = impl_->check(Impl::Phase::kBetweenSteps, "leave()"); !status.ok()) return status;
  impl_->phase = Impl::Phase::kOver;
  ::syncopate::Status left = impl_->exchange->leave();
  if (left.ok() && impl_->has_servers) left = impl_->end_servers();
  return impl_->status(left, "leaving a strategy");
}

}  // namespace syncopate::api
