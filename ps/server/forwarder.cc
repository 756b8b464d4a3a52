#include "ps/server/forwarder.h"

#include <algorithm>

#include "ps/transport_memory.h"

namespace syncopate::ps {
namespace {

// Rows of a state go so many floats, or keys, at a time.
constexpr std::size_t kPage = 64 * 1024;

}  // namespace

Forwarder::Forwarder(Transport& transport, const Clock& clock, int tail, Duration timeout)
    : transport_(transport),
      clock_(clock),
      tail_(tail),
      timeout_(timeout),
      pool_([&transport](std::size_t elements) { return allocate_floats(transport, elements); }, nullptr) {}

Status Forwarder::send(const TrainingState* state) {
  if (state != nullptr) {
    for (const std::string& name : state->names()) {
      for (const Range& piece : state->pieces(name)) {
        outgoing_.mutable_state()->set_part(name);
        outgoing_.mutable_state()->set_begin(piece.begin);
        SYNCOPATE_RETURN_IF_ERROR(send_piece(std::as_bytes(state->values(name, piece))));
      }
    }
    for (const auto& [name, values] : state->counts) {
      outgoing_.mutable_state()->set_counts(name);
      SYNCOPATE_RETURN_IF_ERROR(send_piece(std::as_bytes(std::span(values))));
    }
    for (const auto& [table, rows] : state->rows) SYNCOPATE_RETURN_IF_ERROR(send_rows(table, rows));
  }
  outgoing_.mutable_state()->set_end(state != nullptr);
  outgoing_.mutable_state()->set_step(state != nullptr ? state->step : 0);
  const Status status = send_piece({});
  outgoing_.Clear();
  return status;
}

Status Forwarder::send_rows(std::size_t table, const RowsState& rows) {
  const std::span<const RowKey> keys(rows.keys);
  for (std::size_t begin = 0; begin < keys.size(); begin += kPage) {
    outgoing_.mutable_state()->set_keys(table);
    outgoing_.mutable_state()->set_begin(begin);
    SYNCOPATE_RETURN_IF_ERROR(send_piece(std::as_bytes(keys.subspan(begin, std::min(kPage, keys.size() - begin)))));
  }
  const std::span<const float> values(rows.values);
  for (std::size_t begin = 0; begin < values.size(); begin += kPage) {
    outgoing_.mutable_state()->set_rows(table);
    outgoing_.mutable_state()->set_begin(begin);
    outgoing_.mutable_state()->set_row_floats(rows.row_floats);
    SYNCOPATE_RETURN_IF_ERROR(send_piece(std::as_bytes(values.subspan(begin, std::min(kPage, values.size() - begin)))));
  }
  return Status();
}

Status Forwarder::send_piece(std::span<const std::byte> payload) {
  SYNCOPATE_RETURN_IF_ERROR(transport_.wait(last_, timeout_from_now()));
  if (payload.empty()) return send(outgoing_, payload, &last_);
  SYNCOPATE_ASSIGN_OR_RETURN(WeightsPool::Buffer* const buffer, copy_of(payload));
  const std::span<const std::byte> copy = std::as_bytes(buffer->memory).first(payload.size());
  SYNCOPATE_RETURN_IF_ERROR(send(outgoing_, copy, &buffer->pending));
  return transport_.wait(buffer->pending, timeout_from_now());
}

Status Forwarder::forward(int worker, wire::Header& header, std::span<const std::byte> payload) {
  header.set_origin(static_cast<std::uint32_t>(worker) + 1);
  if (payload.empty()) return send(header, payload, &last_);
  SYNCOPATE_ASSIGN_OR_RETURN(WeightsPool::Buffer* const buffer, copy_of(payload));
  return send(header, std::as_bytes(buffer->memory).first(payload.size()), &buffer->pending);
}

Status Forwarder::worker_lost(int worker) {
  outgoing_.mutable_lost();
  return forward(worker, outgoing_, {});
}

Status Forwarder::wait_for_last_sends() {
  const TimePoint deadline = timeout_from_now();
  SYNCOPATE_RETURN_IF_ERROR(transport_.wait(last_, deadline));
  return pool_.wait_for_given_up([&](const PendingSends& pending) { return transport_.wait(pending, deadline); });
}

Result<WeightsPool::Buffer*> Forwarder::copy_of(std::span<const std::byte> payload) {
  Result<WeightsPool::Buffer*> buffer = pool_.acquire((payload.size() + sizeof(float) - 1) / sizeof(float));
  if (!buffer.ok()) return buffer;
  pool_.give_up(*buffer);  // handed out again only when it has been read
  std::ranges::copy(payload, std::as_writable_bytes((*buffer)->memory).begin());
  return buffer;
}

Status Forwarder::send(const wire::Header& header, std::span<const std::byte> payload, PendingSends* pending) {
  header.SerializeToString(&bytes_);
  return transport_.send(tail_, bytes_, payload, pending, timeout_from_now());
}

}  // namespace syncopate::ps
