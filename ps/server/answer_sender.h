// AnswerSender: sends a shard's responses: weights in place or compressed, rows from memory of their own. The head of a
// shard's two replicas has a silent sender, which changes the shard as sending would, but sends nothing. One thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "common/trace/tracer.h"
#include "common/training_state.h"
#include "common/transport/transport.h"
#include "ps/compression.h"
#include "ps/server/answer_rooms.h"
#include "ps/server/shard.h"
#include "ps/server/shard_codec.h"
#include "ps/server/shard_work.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

struct AnswerSenderOptions {
  int shard = 0;  // the shard's number
  Compression compression;
  Duration timeout{};  // for passing a response to the transport, and for delivery of the last ones
  bool is_silent = false;
  // Set if responses are compressed and the codec must know what every worker has; a silent sender then compresses,
  // too.
  bool keeps_mirrors = false;
  // The state that the job goes on from, which may include what the workers had; null for none. It must outlive the
  // start of the job.
  const TrainingState* restored = nullptr;
  Tracer* tracer = nullptr;  // records answers to pushes, if set
};

class AnswerSender {
 public:
  // `codec` is needed if responses are compressed. `work` is told what steps' responses carry. `on_unreachable` is
  // called with a worker that has taken no response for the timeout. All arguments must outlive this object.
  AnswerSender(const AnswerSenderOptions& options, Shard& shard, ShardCodec* codec, Transport& transport,
               const Clock& clock, ShardWork& work, std::function<void(int)> on_unreachable);

  // Fails if the shard cannot go on. That a worker cannot be answered is not such a failure.
  Status send(std::span<const Answer> answers);
  // Responds to a request for a page of keys. Fails as Shard::on_list_rows and send do.
  Status list_rows(int worker, const wire::ListRows& request);
  // Responds to a request for a chunk. Fails as Shard::on_read_chunk and send do.
  Status read_chunk(int worker, const wire::ReadChunk& request);
  // Waits until the last weights, sent after farewells, have been read, or their readers have been silent for the
  // timeout.
  Status wait_for_last_sends();

 private:
  Status send(const Answer& answer);
  // Returns the payload to send for the response's weights, with the counter of sends that read it.
  Result<ShardCodec::Answer> payload_of(const Answer& answer);
  Status send_rows(const Answer& answer);
  void welcome(int worker);
  // Returns whether the worker goes on with what it had when the state was taken, rather than with the current weights.
  bool begins_with_mirror(std::size_t chunk) const;
  // Sends outgoing_ and the payload.
  Status send(int worker, std::span<const std::byte> payload, PendingSends* pending);
  // Decides what a failure to answer `worker` means. Unless the failure is the shard's own, others must judge it.
  Status not_answered(int worker, const Status& status);
  TimePoint timeout_from_now() const { return clock_.now() + options_.timeout; }

  const AnswerSenderOptions options_;
  Shard& shard_;
  ShardCodec* const codec_;
  Transport& transport_;
  const Clock& clock_;
  ShardWork& work_;
  std::function<void(int)> on_unreachable_;
  AnswerRooms rooms_;
  std::vector<float> made_;                       // rows that a silent sender does not send
  bool is_final_ = false;                         // farewells are being said
  std::vector<const PendingSends*> final_sends_;  // of the weights after farewells
  wire::Header outgoing_;                         // reused, like the next
  std::string outgoing_bytes_;
};

}  // namespace syncopate::ps
