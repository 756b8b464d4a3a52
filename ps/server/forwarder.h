// Forwarder: sends from the head of a shard's two replicas to the tail what workers have sent, in the order in which
// the head takes it, each message with its sender. A payload is copied once, into memory from which the tail reads it,
// so that the worker's own memory is released at once. One thread.
#pragma once

#include <span>
#include <string>

#include "common/clock.h"
#include "common/status.h"
#include "common/training_state.h"
#include "common/transport/transport.h"
#include "ps/server/weights_pool.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

class Forwarder {
 public:
  // `transport` and `clock` must outlive this object. `timeout` applies to each send, and to the delivery of the last
  // ones.
  Forwarder(Transport& transport, const Clock& clock, int tail, Duration timeout);

  // Sends the state that the head goes on from, piece by piece, before anything else. Null means that the job begins.
  Status send(const TrainingState* state);
  // Sends `header`, in which it sets the origin, and the payload that came with it.
  Status forward(int worker, wire::Header& header, std::span<const std::byte> payload);
  Status worker_lost(int worker);
  // Waits until the tail has read everything.
  Status wait_for_last_sends();

 private:
  Status send_rows(std::size_t table, const RowsState& rows);
  // Sends outgoing_ with a copy of the payload. Waits first until the previous copy has been read, so that there is
  // only one.
  Status send_piece(std::span<const std::byte> payload);
  // Sends `header` and the payload, which is in the transport's memory.
  Status send(const wire::Header& header, std::span<const std::byte> payload, PendingSends* pending);
  Result<WeightsPool::Buffer*> copy_of(std::span<const std::byte> payload);
  TimePoint timeout_from_now() const { return clock_.now() + timeout_; }

  Transport& transport_;
  const Clock& clock_;
  int tail_;
  Duration timeout_;
  WeightsPool pool_;       // of copies; a copy is reused once it has been read
  PendingSends last_;      // of messages without a payload
  wire::Header outgoing_;  // reused, like the next
  std::string bytes_;
};

}  // namespace syncopate::ps
