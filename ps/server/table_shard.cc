#include "ps/server/table_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>
#include <utility>

#include "ps/server/shard_state.h"
#include "ps/tables/row_partition.h"

namespace syncopate::ps {
namespace {

constexpr std::uint64_t kMostRows = std::uint64_t{1} << 32;
constexpr std::uint64_t kLargestRoom = std::uint64_t{1} << 27;  // floats

}  // namespace

Status check(const TableOwnership& claim) {
  if (claim.rows < 1 || claim.rows > kMostRows)
    return Status::invalid_argument(fmt::format("a table of {} rows: 1 to 2^32", claim.rows));
  if (claim.width < 1 || claim.width > kLargestRoom || claim.rows_a_step < 1 ||
      claim.rows_a_step > kLargestRoom / claim.width) {
    return Status::invalid_argument(
        fmt::format("a table of which a step touches {} rows of {} floats: 1 to {} floats together", claim.rows_a_step,
                    claim.width, kLargestRoom));
  }
  if (!std::isfinite(claim.limit) || claim.limit < 0) {
    return Status::invalid_argument(fmt::format("rows that begin uniform in ±{}", claim.limit));
  }
  return Status();
}

TableShard::TableShard(const TableShardOptions& options, const Membership& members)
    : options_(options),
      members_(members),
      rows_({.table = options.claim.number,
             .width = width(),
             .limit = options.claim.limit,
             .seed = options.seed,
             .optimizer = options.optimizer}),
      rule_(options.consistency, members),
      workers_(static_cast<std::size_t>(members.workers())),
      sum_(width()) {
  by_rank_.reserve(workers_.size());
}

Status TableShard::restore(const TrainingState& state) {
  SYNCOPATE_ASSIGN_OR_RETURN(const TableCounts counts, table_counts(options_.claim.number, options_.shard,
                                                                    options_.shards, members_.workers(), state));
  version_ = counts.version;
  rule_.restore(clocks_to_go_on_with(counts.clocks, members_));
  for (Worker& worker : workers_) worker.may_skip = true;
  const auto rows = state.rows.find(options_.claim.number);
  if (rows == state.rows.end()) return Status();
  const RowsState& all = rows->second;
  if (all.values.size() != all.keys.size() * all.row_floats) return rows_.restore(all);  // which says what is wrong
  RowsState own{.row_floats = all.row_floats, .keys = {}, .values = {}};
  for (std::size_t i = 0; i < all.keys.size(); ++i) {
    if (shard_of_row(options_.claim.number, all.keys[i], options_.shards) != options_.shard) continue;
    own.keys.push_back(all.keys[i]);
    const auto values = all.values.begin() + static_cast<std::ptrdiff_t>(i * all.row_floats);
    own.values.insert(own.values.end(), values, values + static_cast<std::ptrdiff_t>(all.row_floats));
  }
  return rows_.restore(own);
}

void TableShard::save(TrainingState& state) const {
  TableCounts counts{.version = version_, .clocks = Clocks(members_.workers())};
  for (int i = 0; i < members_.workers(); ++i) {
    const auto worker = static_cast<std::size_t>(i);
    counts.clocks.pushes[worker] = clock(i) - (has_pending_gradient(i) ? 1 : 0);
    counts.clocks.away[worker] = members_.is_lost(i);
  }
  put_table_counts(options_.claim.number, options_.shard, options_.shards, counts, state);
  rows_.save(state.rows[options_.claim.number]);
}

Status TableShard::pull(const PullRequest& request) {
  SYNCOPATE_RETURN_IF_ERROR(check_pull(request));
  Worker& worker = of(request.worker);
  worker.phase = Phase::kPulling;
  worker.slot = request.slot;
  if (request.known) return Status();
  worker.lists[worker.slot].assign(request.keys.begin(), request.keys.end());
  worker.stored.set(worker.slot);
  return Status();
}

Status TableShard::push(const RowsPush& request) {
  SYNCOPATE_RETURN_IF_ERROR(check_push(request));
  Worker& worker = of(request.step.worker);
  worker.phase = Phase::kIdle;
  worker.may_skip = false;
  rule_.on_push(request.step);
  worker.staleness = version_ - worker.version;
  ++counters_.pushes;
  counters_.rows_pushed += static_cast<std::int64_t>(worker.keys().size());
  counters_.staleness_sum += worker.staleness;
  counters_.staleness_max = std::max(counters_.staleness_max, worker.staleness);
  if (!options_.consistency.updates_together()) {
    return update(worker.keys(), request.gradients, request.step.learning_rate, 1);
  }
  worker.holds = true;
  worker.pushed_slot = worker.slot;
  worker.gradients = request.gradients;
  worker.learning_rate = request.step.learning_rate;
  return update_if_all_pushed();
}

void TableShard::lose(int worker) {
  if (has_pending_gradient(worker)) rule_.undo_push(worker);
  of(worker) = Worker();
}

// Workers that have left count, too: they leave without a response to their last push.
Status TableShard::update_if_all_pushed() {
  by_rank_.clear();
  double learning_rate = 0;
  for (int i = 0; i < members_.workers(); ++i) {
    const Worker& worker = of(i);
    if (!worker.holds && members_.is_live(i)) return Status();
    if (!worker.holds) continue;
    if (by_rank_.empty()) learning_rate = worker.learning_rate;
    by_rank_.push_back({worker.lists[worker.pushed_slot], worker.gradients});
  }
  if (by_rank_.empty()) return Status();
  sum_.sum(by_rank_);
  SYNCOPATE_RETURN_IF_ERROR(
      update(sum_.keys(), sum_.values(), learning_rate, 1.0f / static_cast<float>(by_rank_.size())));
  for (Worker& worker : workers_) worker.holds = false;
  return Status();
}

bool TableShard::may_respond(int worker) const {
  return has_pending_pull(worker) && !has_pending_gradient(worker) && rule_.may_respond(worker);
}

TableShard::Answer TableShard::answer(int worker) {
  Worker& to = of(worker);
  to.phase = Phase::kHasRows;
  to.version = version_;
  counters_.rows_pulled += static_cast<std::int64_t>(to.keys().size());
  return {.clock = clock(worker), .staleness = to.staleness, .keys = to.keys()};
}

Status TableShard::ask(const ReadRequest& request) {
  Worker& from = of(request.worker);
  if (from.asks)
    return Status::invalid_argument(fmt::format("worker {} asks for rows before it was answered", request.worker));
  SYNCOPATE_RETURN_IF_ERROR(check_keys(request.keys));
  from.asks = true;
  from.read = request.read;
  from.asked.assign(request.keys.begin(), request.keys.end());
  return Status();
}

TableShard::Asked TableShard::answer_ask(int worker) {
  of(worker).asks = false;
  return {of(worker).read, of(worker).asked};
}

Result<TableShard::Page> TableShard::list(int worker, std::size_t offset) {
  std::vector<RowKey>& listed = of(worker).listed;
  if (offset == 0) listed = rows_.keys();
  if (offset > listed.size()) {
    return Status::invalid_argument(fmt::format("keys from {} on are asked for, of {}", offset, listed.size()));
  }
  const RowKeys rest = RowKeys(listed).subspan(offset);
  return Page{.keys = rest.first(std::min(rest.size(), kKeysAPage)), .total = listed.size()};
}

Status TableShard::update(RowKeys keys, std::span<const float> gradients, double learning_rate, float scale) {
  return rows_.update(keys, gradients, {.learning_rate = learning_rate, .gradient_scale = scale, .number = ++version_});
}

Status TableShard::check_pull(const PullRequest& request) const {
  const Worker& worker = of(request.worker);
  const bool is_its_turn = worker.phase == Phase::kIdle || (worker.phase == Phase::kHasRows && worker.may_skip);
  if (!is_its_turn || request.clock != clock(request.worker)) {
    return Status::invalid_argument(
        fmt::format("a pull behind push {} from worker {}, which has pushed {} times and {}", request.clock,
                    request.worker, clock(request.worker),
                    is_its_turn                       ? "may pull"
                    : worker.phase == Phase::kPulling ? "waits for its rows"
                                                      : "has not used its rows"));
  }
  if (request.slot >= kKeyListSlots) {
    return Status::invalid_argument(fmt::format("keys in slot {} of {}", request.slot, kKeyListSlots));
  }
  if (request.known && (!request.keys.empty() || !worker.stored[request.slot])) {
    return Status::invalid_argument(
        fmt::format("{} keys with slot {}, of which the list is said to be known", request.keys.size(), request.slot));
  }
  if (request.known) return Status();
  const bool is_in_use = worker.holds ? request.slot == worker.pushed_slot || request.slot == worker.slot
                                      : request.slot == worker.slot && worker.stored[request.slot];
  if (is_in_use && clock(request.worker) > 0) {
    return Status::invalid_argument(fmt::format("new keys for slot {}, which the last push refers to", request.slot));
  }
  return check_keys(request.keys);
}

Status TableShard::check_push(const RowsPush& request) const {
  const auto& [rank, clock, learning_rate, arrived] = request.step;
  const Worker& worker = of(rank);
  if (worker.phase != Phase::kHasRows || clock != rule_.clock(rank) + 1) {
    return Status::invalid_argument(
        fmt::format("push {} of rows from worker {}, which has pushed {} times and {}", clock, rank, rule_.clock(rank),
                    worker.phase == Phase::kHasRows ? "has its rows" : "has not got its rows"));
  }
  if (!std::isfinite(learning_rate) || learning_rate < 0) {
    return Status::invalid_argument(fmt::format("a learning rate of {}", learning_rate));
  }
  if (request.gradients.size() != worker.keys().size() * width()) {
    return Status::invalid_argument(fmt::format("gradients of {} floats for {} rows of {}", request.gradients.size(),
                                                worker.keys().size(), width()));
  }
  return Status();
}

Status TableShard::check_keys(RowKeys keys) const {
  if (keys.size() > options_.claim.rows_a_step) {
    return Status::invalid_argument(
        fmt::format("{} rows, where a step touches {} at most", keys.size(), options_.claim.rows_a_step));
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] >= options_.claim.rows || (i > 0 && keys[i] <= keys[i - 1])) {
      return Status::invalid_argument(
          fmt::format("row {} behind row {} of {}", keys[i], i > 0 ? keys[i - 1] : 0, options_.claim.rows));
    }
    if (shard_of_row(options_.claim.number, keys[i], options_.shards) != options_.shard) {
      return Status::invalid_argument(fmt::format("row {}, which another shard holds", keys[i]));
    }
  }
  return Status();
}

}  // namespace syncopate::ps
