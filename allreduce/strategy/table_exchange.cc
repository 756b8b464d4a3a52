#include "allreduce/strategy/table_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace syncopate::allreduce {
namespace {

static_assert(sizeof(RowKey) == sizeof(float), "a message is counted in both");

}  // namespace

TableExchange::TableExchange(Collective& collective, const TensorSpec& table)
    : collective_(collective),
      rows_(table.rows()),
      width_(table.width()),
      most_rows_(static_cast<std::size_t>(table.table->rows_a_step)),
      given_(static_cast<std::size_t>(collective.size())),
      taken_(given_.size()),
      keys_taken_(given_.size()),
      rows_taken_(given_.size()),
      merged_(width_) {}

Status TableExchange::prepare(ExchangeMethod method) {
  if (method == ExchangeMethod::kDense) {
    const Result<std::span<float>> memory = collective_.allocate(rows_ * (width_ + 1));
    if (memory.ok()) table_ = *memory;
    return memory.status();
  }
  for (std::span<float>& message : messages_) {
    SYNCOPATE_ASSIGN_OR_RETURN(message, collective_.allocate(most_rows_ * (width_ + 1)));
  }
  return Status();
}

Status TableExchange::exchange(ExchangeMethod method, RowKeys keys, std::span<const float> gradients,
                               TimePoint deadline) {
  assert(keys.size() <= most_rows_ && gradients.size() == keys.size() * width_);
  return method == ExchangeMethod::kRows ? exchange_rows(keys, gradients, deadline)
                                         : exchange_dense(keys, gradients, deadline);
}

Status TableExchange::exchange_rows(RowKeys keys, std::span<const float> gradients, TimePoint deadline) {
  turn_ = 1 - turn_;
  const std::span<float> message = messages_[turn_].first(keys.size() * (width_ + 1));
  std::ranges::copy(gradients, message.begin());
  if (!keys.empty()) std::memcpy(message.data() + gradients.size(), keys.data(), keys.size_bytes());
  std::ranges::fill(given_, std::as_bytes(message));
  SYNCOPATE_RETURN_IF_ERROR(collective_.all_to_all(given_, taken_, deadline));
  for (std::size_t rank = 0; rank < taken_.size(); ++rank) {
    const Result<SparseRows> rows = rows_of(rank);
    if (!rows.ok()) return rows.status().in(fmt::format("from rank {}", rank));
    rows_taken_[rank] = *rows;
  }
  merged_.sum(rows_taken_);
  sum_ = {merged_.keys(), merged_.values()};
  return Status();
}

Result<SparseRows> TableExchange::rows_of(std::size_t rank) {
  const Bytes message = taken_[rank];
  const std::size_t row_bytes = (width_ + 1) * sizeof(float), count = message.size() / row_bytes;
  if (message.size() != count * row_bytes || count > most_rows_) {
    return Status::data_loss(
        fmt::format("{} bytes are not up to {} rows of {} floats with their keys", message.size(), most_rows_, width_));
  }
  const auto* const values = reinterpret_cast<const float*>(message.data());
  const auto* const their_keys = reinterpret_cast<const RowKey*>(values + count * width_);
  std::vector<RowKey>& keys = keys_taken_[rank];
  keys.assign(their_keys, their_keys + count);
  const bool ascends = std::ranges::adjacent_find(keys, std::greater_equal()) == keys.end();
  if (!ascends || (count > 0 && keys.back() >= rows_)) {
    return Status::data_loss(fmt::format("its keys do not ascend below {}", rows_));
  }
  return SparseRows{keys, {values, count * width_}};
}

Status TableExchange::exchange_dense(RowKeys keys, std::span<const float> gradients, TimePoint deadline) {
  const std::span<float> touched = table_.subspan(rows_ * width_);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::copy_n(gradients.begin() + i * width_, width_, table_.begin() + keys[i] * width_);
    touched[keys[i]] = 1;
  }
  SYNCOPATE_RETURN_IF_ERROR(collective_.all_reduce(table_, deadline));
  keys_.clear();
  for (std::size_t row = 0; row < rows_; ++row) {
    if (touched[row] != 0) keys_.push_back(static_cast<RowKey>(row));
  }
  if (values_.size() < keys_.size() * width_) values_.resize(keys_.size() * width_);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const std::span<float> row = table_.subspan(keys_[i] * width_, width_);
    std::ranges::copy(row, values_.begin() + i * width_);
    std::ranges::fill(row, 0.0f);
    touched[keys_[i]] = 0;
  }
  sum_ = {keys_, std::span(values_).first(keys_.size() * width_)};
  return Status();
}

}  // namespace syncopate::allreduce
