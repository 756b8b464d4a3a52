// ShardServer: the driver of one Shard: takes messages from its endpoint, asks the core, sends what is due. It holds no
// decision, and is the only one that touches its shard: there is no lock on the data path.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "common/transport/transport.h"
#include "ps/answer_rooms.h"
#include "ps/compression.h"
#include "ps/group.h"
#include "ps/shard.h"
#include "ps/shard_codec.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

struct ShardServerOptions {
  PsGroup group;
  Consistency consistency;
  OptimizerConfig optimizer;
  StalenessOptions staleness;
  Compression compression;
  std::uint64_t seed = 1;                       // of the first values of tables' rows
  Duration timeout = std::chrono::seconds(30);  // of handing an answer to the transport, and of the last ones' delivery
};

struct ShardServerCounters {
  ShardCounters shard;
  std::int64_t dropped = 0;  // messages that did not check out
};

class ShardServer {
 public:
  // `transport` is the endpoint of a shard of the group; it and `clock` outlive this object.
  ShardServer(ShardServerOptions options, Transport& transport, const Clock& clock);

  // Serves until every worker has left or is lost; where there are tables, until all have said goodbye. Waits for
  // workers as long as they take: that they are alive is the control plane's to watch. Fails with invalid argument if
  // the job could not start (the workers' layouts differ), with cancelled after transport.interrupt(), and with what
  // the transport or memory fails with. Once, on the endpoint's thread; no message of the endpoint is alive afterwards.
  Status serve();

  // Tells that worker `rank` is gone, as the control plane has found out. Any thread; heeded within 50 ms.
  void worker_lost(int rank);

  // To be read when serve() has returned.
  ShardServerCounters counters() const { return {shard_.counters(), dropped_}; }

 private:
  Status serve_until_done();
  Status wait_for_last_sends();
  Status take_lost_workers();
  Status handle(Message message);
  Shard::Answers dispatch(const Message& message);
  // What the message, whose header is in incoming_, carries; fails with invalid argument if that cannot be read.
  Result<std::span<const float>> floats_in(const Message& message);
  Status finish(int from, const Shard::Answers& answers);
  Message& held(int worker, std::size_t chunk);
  void let_go_of_gradients(std::size_t chunk);
  void let_go_of_gradients();
  Message& held_rows(int worker, std::size_t table);
  void let_go_of_rows();
  Status send(const Answer& answer);
  // What of the answer's weights goes on the wire, and from where.
  Result<ShardCodec::Answer> payload_of(const Answer& answer);
  Status send_rows(const Answer& answer);
  Shard::Answers list_rows(int worker, std::size_t table, std::size_t offset);
  // Sends outgoing_ and the payload.
  Status send(int worker, std::span<const std::byte> payload, PendingSends* pending);
  // What a failure to answer `worker` means: it is lost, unless the failure is the shard's own.
  Status not_answered(int worker, const Status& status);
  TimePoint timeout_from_now() const { return clock_.now() + options_.timeout; }
  void drop(int from, const std::string& reason);

  ShardServerOptions options_;
  Transport& transport_;
  const Clock& clock_;
  int number_;  // of the shard
  Shard shard_;
  std::optional<ShardCodec> codec_;               // where anything is compressed
  std::vector<Message> held_;                     // by chunk, then worker: pushes whose gradients the shard still needs
  std::vector<Message> held_rows_;                // by table, then worker: the same
  std::vector<const PendingSends*> final_sends_;  // of weights behind a farewell
  AnswerRooms rooms_;
  wire::Header incoming_, outgoing_;  // reused, as is the next
  std::string outgoing_bytes_;
  std::int64_t dropped_ = 0;

  std::mutex mutex_;
  std::vector<int> lost_;  // guarded by mutex_
};

}  // namespace syncopate::ps
