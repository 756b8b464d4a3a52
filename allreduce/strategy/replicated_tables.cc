#include "allreduce/strategy/replicated_tables.h"

#include <fmt/format.h>

#include <cassert>

namespace syncopate::allreduce {
namespace {

const char* name_of(ExchangeMethod method) { return method == ExchangeMethod::kRows ? "rows" : "dense"; }

}  // namespace

void ReplicatedTables::allocate(const ParamLayout& layout) {
  layout_ = layout;
  make_rows();
}

void ReplicatedTables::save(TrainingState& state) const {
  for (std::size_t table = 0; table < size(); ++table) rows_[table].save(state.rows[number_of(table)]);
}

Status ReplicatedTables::restore(const TrainingState& state) {
  make_rows();
  for (std::size_t table = 0; table < size(); ++table) {
    const auto rows = state.rows.find(number_of(table));
    if (rows == state.rows.end()) continue;
    SYNCOPATE_RETURN_IF_ERROR(rows_[table].restore(rows->second).in(layout_.tables()[table].name));
  }
  return Status();
}

Status ReplicatedTables::transfer(StateTransfer& transfer) {
  TrainingState state;
  if (transfer.takes()) make_rows();
  if (transfer.takes() || transfer.gives()) save(state);
  for (std::size_t table = 0; table < size(); ++table) {
    SYNCOPATE_RETURN_IF_ERROR(transfer.give(layout_.tables()[table], state.rows[number_of(table)]));
  }
  return transfer.takes() ? restore(state) : Status();
}

std::vector<std::uint64_t> ReplicatedTables::found() const {
  std::vector<std::uint64_t> found(size());
  for (std::size_t table = 0; table < tables_.size() && searching_ == 0; ++table) {
    if (tables_[table].is_found) found[table] = 1 + static_cast<std::uint64_t>(tables_[table].settled);
  }
  return found;
}

Status ReplicatedTables::prepare(std::span<const std::uint64_t> found) {
  tables_.reserve(size());
  for (const TensorSpec& spec : layout_.tables()) {
    std::vector<ExchangeMethod> methods = methods_for(spec);
    const bool is_found = methods.size() > 1;
    if (const std::uint64_t known = found[tables_.size()]; is_found && known > 0) {
      if (known > 2) return Status::data_loss(fmt::format("{}: {} is no method to exchange a table", spec.name, known));
      methods = {known == 1 ? ExchangeMethod::kRows : ExchangeMethod::kDense};
    }
    Table& table = tables_.emplace_back(Table{spec, TableExchange(collective_, spec), BucketSearch(methods.size()),
                                              methods, methods.front(), is_found});
    for (const ExchangeMethod method : methods) SYNCOPATE_RETURN_IF_ERROR(table.exchange.prepare(method).in(spec.name));
    if (methods.size() > 1) ++searching_;
    steps_ = std::max(steps_, table.search.steps());
  }
  if (searching_ == 0) {
    tell_untried();
    return Status();
  }
  const Result<std::span<float>> times = collective_.allocate(2 * searching_);
  if (times.ok()) times_ = *times;
  return times.status();
}

// For N rows, the dense exchange moves 2·(n-1)/n·N rows each way; the other at most (n-1)·K, for K rows of each
// rank.
std::vector<ExchangeMethod> ReplicatedTables::methods_for(const TensorSpec& table) const {
  if (options_.exchange == SparseExchange::kRows) return {ExchangeMethod::kRows};
  if (options_.exchange == SparseExchange::kDense) return {ExchangeMethod::kDense};
  const auto ranks = static_cast<std::size_t>(collective_.size());
  const auto most = static_cast<std::size_t>(table.table->rows_a_step);
  const bool may_be_dense = ranks > 1 && 2 * table.rows() <= kMostDense * ranks * most;
  return may_be_dense ? std::vector{ExchangeMethod::kRows, ExchangeMethod::kDense} : std::vector{ExchangeMethod::kRows};
}

Status ReplicatedTables::begin_step(std::span<const RowKeys> keys, std::span<float> weights) {
  assert(keys.size() == tables_.size());
  for (std::size_t table = 0; table < keys.size(); ++table) {
    const std::span<float> room = slice(weights, tables_[table].spec.room_of(keys[table].size()));
    if (options_.undoable) {
      rows_[table].peek(keys[table], room);
    } else {
      SYNCOPATE_RETURN_IF_ERROR(rows_[table].read(keys[table], room).in(tables_[table].spec.name));
    }
  }
  return Status();
}

ExchangeMethod ReplicatedTables::method(std::size_t table) const {
  const Table& each = tables_[table];
  return each.search.ended() ? each.settled : each.methods[each.search.candidate()];
}

Status ReplicatedTables::exchange(std::size_t table, RowKeys keys, std::span<const float> gradients,
                                  TimePoint deadline) {
  Table& each = tables_[table];
  const TimePoint begin = clock_.now();
  const Status status =
      each.exchange.exchange(method(table), keys, slice(gradients, each.spec.room_of(keys.size())), deadline);
  each.took = clock_.now() - begin;
  return status.ok() ? status : status.in(each.spec.name);
}

Status ReplicatedTables::update(std::size_t table, const UpdateStep& step) {
  const SparseRows sum = tables_[table].exchange.sum();
  return rows_[table].update(sum.keys, sum.values, step);
}

Status ReplicatedTables::end_step(TimePoint deadline) {
  if (searching_ == 0) return Status();
  bool ended = true;
  for (Table& table : tables_) {
    if (table.search.ended()) continue;
    table.search.step_took(table.took);
    ended = table.search.ended();
  }
  return ended ? settle(deadline) : Status();
}

Status ReplicatedTables::settle(TimePoint deadline) {
  std::size_t place = 0;
  for (const Table& table : tables_) {
    if (table.methods.size() < 2) continue;
    for (const Duration median : table.search.medians()) times_[place++] = static_cast<float>(1e3 * seconds(median));
  }
  SYNCOPATE_RETURN_IF_ERROR(collective_.all_reduce(times_, deadline));
  std::string finding;
  place = 0;
  for (Table& table : tables_) {
    finding += fmt::format("{}{} ", finding.empty() ? "" : "; ", table.spec.name);
    if (table.methods.size() < 2) {
      finding += "rows, too large for dense";
      continue;
    }
    const std::span<const float> times = times_.subspan(place, 2);
    const std::size_t best = fastest(times), other = 1 - best;
    table.settled = table.methods[best];
    const auto ranks = static_cast<float>(collective_.size());
    finding += fmt::format("{} {:.3f} ms, {} {:.3f} ms", name_of(table.methods[best]), times[best] / ranks,
                           name_of(table.methods[other]), times[other] / ranks);
    place += 2;
  }
  searching_ = 0;
  tell(finding);
  return Status();
}

// There is nothing to be searched for: a restored run has found it, or rows are what auto has come to.
void ReplicatedTables::tell_untried() const {
  if (options_.exchange != SparseExchange::kAuto || tables_.empty() || collective_.size() == 1) return;
  std::string finding;
  for (const Table& table : tables_) {
    finding += fmt::format(
        "{}{} {}", finding.empty() ? "" : "; ", table.spec.name,
        table.is_found ? fmt::format("{}, as found before", name_of(table.settled)) : "rows, too large for dense");
  }
  tell(finding);
}

void ReplicatedTables::leave() const {
  if (searching_ > 0) tell(fmt::format("not found: a search takes {} steps", steps_));
}

void ReplicatedTables::tell(const std::string& finding) const {
  if (options_.on_found) options_.on_found(finding);
}

}  // namespace syncopate::allreduce
