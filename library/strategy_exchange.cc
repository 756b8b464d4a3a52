#include "library/strategy_exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

#include "allreduce/strategy/allreduce_strategy.h"
#include "allreduce/strategy/sharded_strategy.h"
#include "common/training_state.h"
#include "ps/client/local_steps_strategy.h"
#include "ps/client/ps_strategy.h"

namespace syncopate::library {
Result<std::unique_ptr<StrategyExchange>> StrategyExchange::connect(std::shared_ptr<Group> group,
                                                                    const std::string& name, const ParamLayout& layout,
                                                                    const TrainingOptions& options,
                                                                    const std::vector<StartedServer>& started) {
  std::unique_ptr<StrategyExchange> exchange(new StrategyExchange(std::move(group), layout));
  SYNCOPATE_RETURN_IF_ERROR(options.servers > 0 ? exchange->connect_servers(name, options, started)
                            : options.sharded   ? exchange->connect_shares(name, options)
                                                : exchange->connect_allreduce(name, options));
  exchange->has_one_rate_ = options.optimizer.kind == OptimizerKind::kFtrl;
  const bool outlives_ranks = options.elastic && options.servers > 0;
  exchange->interrupted_by_loss_.emplace(
      *exchange->group_, [&each = *exchange] { each.interrupt(); },
      outlives_ranks ? LossesOf::kServers : LossesOf::kAll);
  SYNCOPATE_ASSIGN_OR_RETURN(exchange->arenas_, exchange->strategy_->allocate(layout));
  return exchange;
}

StrategyExchange::~StrategyExchange() {
  // Between steps the wire is left in order, so that others still get what was sent to them.
  if (in_step_) interrupt();
  interrupted_by_loss_.reset();
  strategy_.reset();
}

Status StrategyExchange::connect_allreduce(const std::string& name, const TrainingOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(connected_, group_->connect_collective(name));
  activity_.trace_to(group_->tracer());
  strategy_ = allreduce::make_allreduce_strategy(*connected_.collective,
                                                 {.optimizer = options.optimizer,
                                                  .bucket_bytes = options.bucket_bytes,
                                                  .codec = options.codec,
                                                  .timeout = group_->timeout(),
                                                  .workers = group_->members(),
                                                  .elastic = options.elastic,
                                                  .agrees_on_rates = true,
                                                  .activity = group_->tracer() != nullptr ? &activity_ : nullptr},
                                                 group_->clock());
  return Status();
}

Status StrategyExchange::connect_shares(const std::string& name, const TrainingOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(connected_, group_->connect_collective(name, true));
  activity_.trace_to(group_->tracer());
  is_shared_ = true;
  strategy_ = allreduce::make_sharded_strategy(*connected_.collective,
                                               {.optimizer = options.optimizer,
                                                .stage = allreduce::ShardingStage::kGradients,
                                                .bucket_bytes = options.bucket_bytes,
                                                .agrees_on_rates = true,
                                                .timeout = group_->timeout(),
                                                .activity = group_->tracer() != nullptr ? &activity_ : nullptr},
                                               group_->clock());
  return Status();
}

Status StrategyExchange::connect_servers(const std::string& name, const TrainingOptions& options,
                                         const std::vector<StartedServer>& started) {
  SYNCOPATE_RETURN_IF_ERROR(watch_servers(name, started));
  Tracer* const tracer = group_->take_server_tracer();
  const ps::PsGroup members{.workers = group_->size(), .servers = options.servers};
  SYNCOPATE_ASSIGN_OR_RETURN(connected_.transport, group_->connect_servers(name, members.size()));
  const ps::Sharding cut{.chunk_bytes = options.bucket_bytes};
  auto servers = std::make_unique<ps::PsStrategy>(
      ps::PsStrategyOptions{.group = members,
                            .sharding = options.needs_whole_tensors() ? ps::kWholeTensors : cut,
                            .answers_in_backward = false,
                            .compression = {.codec = options.codec},
                            .timeout = group_->timeout(),
                            .tracer = tracer},
      *connected_.transport, group_->clock(), nullptr);
  if (!options.consistency.pushes_weights()) {
    servers_ = servers.get();
    strategy_ = std::move(servers);
    return Status();
  }
  // Zhang, Choromanska and LeCun 2015, section 2: alpha = 0.9 / workers.
  ps::LocalStepsOptions steps{.optimizer = options.optimizer, .period = options.consistency.period(), .tracer = tracer};
  if (options.consistency.is_elastic()) steps.elastic_rate = 0.9f / static_cast<float>(group_->size());
  strategy_ = std::make_unique<ps::LocalStepsStrategy>(steps, std::move(servers), group_->clock(), group_->rank());
  return Status();
}

// Who has started servers tells the others which processes they are: those of this host are watched here.
Status StrategyExchange::watch_servers(const std::string& name, const std::vector<StartedServer>& started) {
  std::string own;
  for (const StartedServer& server : started) own += fmt::format("{} {} ", server.number, server.pid);
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::vector<std::string> told,
      group_->rendezvous().exchange(name + "/servers", group_->rank(), group_->size(), own, group_->deadline()));
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    const WatchedProcess& starter = group_->process_of(static_cast<int>(rank));
    if (!starter.is_here) continue;
    std::istringstream text(told[rank]);
    int number = 0;
    for (int pid = 0; text >> number >> pid;) {
      SYNCOPATE_RETURN_IF_ERROR(group_->watch().watch(
          {.pid = pid, .rank = -1, .name = fmt::format("server {}", number), .host = starter.host}));
      watched_pids_.push_back(pid);
    }
  }
  return Status();
}

void StrategyExchange::interrupt() {
  if (connected_.collective) connected_.collective->interrupt();
  if (connected_.transport) connected_.transport->interrupt();
}

std::span<float> StrategyExchange::weights(std::size_t tensor) const {
  return slice(arenas_.weights, layout_.tensors()[tensor].range);
}

std::span<float> StrategyExchange::gradients(std::size_t tensor) const {
  return slice(arenas_.gradients, layout_.tensors()[tensor].range);
}

Status StrategyExchange::has_one_optimizer() const {
  if (connected_.collective || servers_ != nullptr) return Status();
  return Status::invalid_argument(
      "under local-sgd and easgd the optimizer of each rank remembers something else: save model.state_dict() alone, "
      "and "
      "begin with a new optimizer");
}

Status StrategyExchange::restore(std::int64_t updates, const TensorMemories& memories) {
  SYNCOPATE_RETURN_IF_ERROR(has_one_optimizer());
  const Range all{0, layout_.size()};
  TrainingState state;
  state.step = updates;
  state.put(state_part::kWeights, 0, arenas_.weights);
  for (std::size_t memory = 0; memory < memories.size(); ++memory) {
    const std::span<float> values = state.piece(state_part::kOptimizer[memory], all);
    std::ranges::fill(values, 0.0f);  // padding
    for (std::size_t tensor = 0; tensor < layout_.tensors().size(); ++tensor) {
      std::ranges::copy(memories[memory][tensor], slice(values, layout_.tensors()[tensor].range).begin());
    }
  }
  return strategy_->resumable()->restore(state);
}

Result<std::int64_t> StrategyExchange::save(const TensorMemories& memories) {
  SYNCOPATE_RETURN_IF_ERROR(has_one_optimizer());
  TrainingState state;
  if (servers_ != nullptr) {
    in_step_ = true;
    SYNCOPATE_RETURN_IF_ERROR(servers_->read_optimizer(state));
    weight_watch_->remember();
    in_step_ = false;
  } else {
    SYNCOPATE_RETURN_IF_ERROR(strategy_->resumable()->save(state));
  }
  if (is_shared_) {
    in_step_ = true;
    SYNCOPATE_RETURN_IF_ERROR(sum_shares(state, memories));
    in_step_ = false;
    return step_;
  }
  for (std::size_t memory = 0; memory < memories.size(); ++memory) {
    for (std::size_t tensor = 0; tensor < layout_.tensors().size(); ++tensor) {
      SYNCOPATE_RETURN_IF_ERROR(
          state.read(state_part::kOptimizer[memory], layout_.tensors()[tensor].range, memories[memory][tensor]));
    }
  }
  return servers_ != nullptr ? servers_->updates().value_or(step_) : step_;
}

// Each number is of one rank, and nothing is added to it but zeros.
Status StrategyExchange::sum_shares(const TrainingState& own, const TensorMemories& memories) {
  for (std::size_t memory = 0; memory < memories.size(); ++memory) {
    const char* const name = state_part::kOptimizer[memory];
    std::ranges::fill(arenas_.gradients, 0.0f);
    for (const Range& piece : own.pieces(name)) {
      std::ranges::copy(own.values(name, piece), slice(arenas_.gradients, piece).begin());
    }
    SYNCOPATE_RETURN_IF_ERROR(connected_.collective->all_reduce(arenas_.gradients, group_->deadline()));
    for (std::size_t tensor = 0; tensor < layout_.tensors().size(); ++tensor) {
      std::ranges::copy(gradients(tensor), memories[memory][tensor].begin());
    }
  }
  return Status();
}

Status StrategyExchange::join() {
  in_step_ = true;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<Range> buckets, strategy_->join());
  in_step_ = false;
  step_ = strategy_->first_step();
  release_.emplace(layout_, buckets);
  if (servers_ != nullptr) weight_watch_.emplace(arenas_.weights);
  return Status();
}

Status StrategyExchange::check_rate(double learning_rate) const {
  SYNCOPATE_RETURN_IF_ERROR(check_learning_rate(learning_rate));
  if (!has_one_rate_ || rate_.value_or(learning_rate) == learning_rate) return Status();
  return Status::invalid_argument(
      fmt::format("a learning rate of {}, after one of {}: ftrl has one rate in all steps", learning_rate, *rate_));
}

void StrategyExchange::begin_step(double learning_rate) {
  rate_ = learning_rate;
  in_step_ = true;
  release_->begin();
  strategy_->begin_step({.step = step_, .learning_rate = learning_rate});
}

void StrategyExchange::gradient(std::size_t tensor, std::span<float> values, bool is_absent) {
  const std::span<float> place = gradients(tensor);
  if (is_absent) {
    std::ranges::fill(place, 0.0f);
  } else {
    std::ranges::copy(values, place.begin());
  }
  gradient_in_place(tensor);
}

void StrategyExchange::gradient_in_place(std::size_t tensor) {
  release_->ready(tensor, [this](std::size_t bucket) { strategy_->gradient_ready(bucket); });
}

bool StrategyExchange::has_same(std::size_t tensor, std::span<const float> values) const {
  const std::span<const float> given = gradients(tensor);
  return given.size() == values.size() && std::memcmp(given.data(), values.data(), given.size_bytes()) == 0;
}

std::optional<std::size_t> StrategyExchange::written_tensor() const {
  const std::optional<std::size_t> element = weight_watch_ ? weight_watch_->written() : std::nullopt;
  if (!element) return std::nullopt;
  const auto has_it = [&](const TensorSpec& tensor) {
    return tensor.range.begin <= *element && *element < tensor.range.end;
  };
  return static_cast<std::size_t>(std::ranges::find_if(layout_.tensors(), has_it) - layout_.tensors().begin());
}

Result<SyncStats> StrategyExchange::finish_step() {
  SYNCOPATE_ASSIGN_OR_RETURN(SyncStats stats, strategy_->finish_step());
  SYNCOPATE_RETURN_IF_ERROR(strategy_->weights_needed({0, layout_.size()}));
  ++step_;
  if (weight_watch_) weight_watch_->remember();
  in_step_ = false;
  return stats;
}

Status StrategyExchange::leave() {
  SYNCOPATE_RETURN_IF_ERROR(strategy_->leave());
  for (const int pid : watched_pids_) group_->watch().forget(pid);
  return Status();
}

}  // namespace syncopate::library
