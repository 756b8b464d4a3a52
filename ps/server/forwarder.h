// Forwarder: the head's way to the tail of a shard's two homes: what workers have sent, in the order in which the head
// takes it, each with who sent it. A payload is copied once, into memory from which the tail reads it, so that the
// worker gets its own back at once. One thread.
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
  // `transport` and `clock` outlive this object. `timeout` is of each send, and of the last ones' delivery.
  Forwarder(Transport& transport, const Clock& clock, int tail, Duration timeout);

  // What the head goes on from, piece by piece, before anything else; null: nothing, the job begins.
  Status send(const TrainingState* state);
  // `header`, whose origin it sets, and what came with it.
  Status forward(int worker, wire::Header& header, std::span<const std::byte> payload);
  Status worker_lost(int worker);
  // Until the tail has read all.
  Status wait_for_last_sends();

 private:
  Status send_rows(std::size_t table, const RowsState& rows);
  // Sends outgoing_ with a copy of the payload; waits until the one before has been read, so that there is but one
  // copy.
  Status send_piece(std::span<const std::byte> payload);
  // Sends `header` and the payload, which is in the transport's memory.
  Status send(const wire::Header& header, std::span<const std::byte> payload, PendingSends* pending);
  Result<WeightsPool::Buffer*> copy_of(std::span<const std::byte> payload);
  TimePoint timeout_from_now() const { return clock_.now() + timeout_; }

  Transport& transport_;
  const Clock& clock_;
  int tail_;
  Duration timeout_;
  WeightsPool pool_;       // of copies, used again when they have been read
  PendingSends last_;      // of messages without a payload
  wire::Header outgoing_;  // reused, as is the next
  std::string bytes_;
};

}  // namespace syncopate::ps
