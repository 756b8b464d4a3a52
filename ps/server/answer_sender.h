// AnswerSender: puts a shard's answers on the wire: weights from where they lie or compressed, rows from rooms of their
// own. The head of a shard's two homes has a silent one, which does to the shard what sending would, and sends nothing.
// One thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "common/training_state.h"
#include "common/transport/transport.h"
#include "ps/compression.h"
#include "ps/server/answer_rooms.h"
#include "ps/server/shard.h"
#include "ps/server/shard_codec.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

struct AnswerSenderOptions {
  int shard = 0;  // its number
  Compression compression;
  Duration timeout{};  // of handing an answer to the transport, and of the last ones' delivery
  bool is_silent = false;
  // Where answers are compressed and the codec is to know what all workers have: a silent one then compresses, too.
  bool keeps_mirrors = false;
  // What the job goes on from, which may tell what the workers had; null: none. It outlives the start of the job.
  const TrainingState* restored = nullptr;
};

class AnswerSender {
 public:
  // `codec` is needed where answers are compressed. `on_unreachable` is called for a worker that has taken no answer
  // for the timeout. All outlive this object.
  AnswerSender(const AnswerSenderOptions& options, Shard& shard, ShardCodec* codec, Transport& transport,
               const Clock& clock, std::function<void(int)> on_unreachable);

  // Fails where the shard cannot go on; a worker that cannot be answered is not such a failure.
  Status send(std::span<const Answer> answers);
  // Answers the wish for a page of keys. Fails as Shard::on_list_rows and send do.
  Status list_rows(int worker, const wire::ListRows& request);
  // Until the last weights, behind farewells, have been read, or their readers have been silent for the timeout.
  Status wait_for_last_sends();

 private:
  Status send(const Answer& answer);
  // What of the answer's weights goes on the wire, and from where.
  Result<ShardCodec::Answer> payload_of(const Answer& answer);
  Status send_rows(const Answer& answer);
  void welcome(int worker);
  // The worker goes on with what it had when the state was taken, rather than with the weights as they are.
  bool begins_with_mirror(std::size_t chunk) const;
  // Sends outgoing_ and the payload.
  Status send(int worker, std::span<const std::byte> payload, PendingSends* pending);
  // What a failure to answer `worker` means: something for others to judge, unless the failure is the shard's own.
  Status not_answered(int worker, const Status& status);
  TimePoint timeout_from_now() const { return clock_.now() + options_.timeout; }

  const AnswerSenderOptions options_;
  Shard& shard_;
  ShardCodec* const codec_;
  Transport& transport_;
  const Clock& clock_;
  std::function<void(int)> on_unreachable_;
  AnswerRooms rooms_;
  std::vector<float> made_;                       // rows that a silent one does not send
  bool is_final_ = false;                         // farewells are being said
  std::vector<const PendingSends*> final_sends_;  // of weights behind them
  wire::Header outgoing_;                         // reused, as is the next
  std::string outgoing_bytes_;
};

}  // namespace syncopate::ps
