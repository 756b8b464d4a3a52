#include "allreduce/collective/state_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace syncopate::allreduce {

Result<StateTransfer> StateTransfer::begin(Collective& collective, int giver, bool takes,
                                           std::function<TimePoint()> deadline) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> piece, collective.allocate(kPieceFloats));
  return StateTransfer(collective, giver, takes, std::move(deadline), piece);
}

Status StateTransfer::give(std::span<float> values) {
  return pass(std::as_writable_bytes(values), values.size_bytes(), takes_);
}

Status StateTransfer::give(const TensorSpec& table, RowsState& rows) {
  std::uint64_t shape[] = {rows.keys.size(), rows.row_floats};
  SYNCOPATE_RETURN_IF_ERROR(pass(std::as_writable_bytes(std::span(shape)), sizeof(shape), !gives()));
  const auto [count, row_floats] = shape;
  RowsState unused;
  RowsState& held = gives() || takes_ ? rows : unused;
  if (count > table.rows() || (takes_ && row_floats != rows.row_floats)) {
    return Status::data_loss(fmt::format("{}: {} rows of {} floats cannot be of {} rows of {}", table.name, count,
                                         row_floats, table.rows(), rows.row_floats));
  }
  if (takes_) {
    rows.keys.resize(count);
    rows.values.resize(count * row_floats);
  }
  SYNCOPATE_RETURN_IF_ERROR(pass(std::as_writable_bytes(std::span(held.keys)), count * sizeof(RowKey), takes_));
  SYNCOPATE_RETURN_IF_ERROR(
      pass(std::as_writable_bytes(std::span(held.values)), count * row_floats * sizeof(float), takes_));
  const bool ascends = std::ranges::adjacent_find(held.keys, std::greater_equal()) == held.keys.end();
  if (ascends && (held.keys.empty() || held.keys.back() < table.rows())) return Status();
  return Status::data_loss(fmt::format("{}: its keys do not ascend below {}", table.name, table.rows()));
}

Status StateTransfer::pass(std::span<std::byte> values, std::size_t bytes, bool keeps) {
  for (std::size_t begin = 0; begin < bytes;) {
    const std::size_t length = std::min(bytes - begin, piece_.size_bytes());
    const std::span<float> piece = piece_.first((length + sizeof(float) - 1) / sizeof(float));
    if (gives()) std::memcpy(piece.data(), values.data() + begin, length);
    SYNCOPATE_RETURN_IF_ERROR(collective_.broadcast(piece, giver_, deadline_()));
    if (keeps) std::memcpy(values.data() + begin, piece.data(), length);
    begin += length;
  }
  return Status();
}

}  // namespace syncopate::allreduce
