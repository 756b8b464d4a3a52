// ShardServer: the driver of one Shard: takes messages from its endpoint, asks the core, sends what is due. It holds no
// decision, and is the only one that touches its shard: there is no lock on the data path.
//
// With standbys a shard has two homes, each with a server. The head takes what workers send, hands it on to the tail in
// the order in which it takes it, and answers nothing; the tail feeds its own shard with that, and answers. So an
// answer means that both have, or will have made, what is answered (README.md, "Replication").
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "common/training_state.h"
#include "common/transport/transport.h"
#include "ps/compression.h"
#include "ps/group.h"
#include "ps/server/answer_sender.h"
#include "ps/server/forwarder.h"
#include "ps/server/held_messages.h"
#include "ps/server/missing_workers.h"
#include "ps/server/shard.h"
#include "ps/server/shard_codec.h"
#include "ps/server/shard_cut.h"
#include "ps/server/state_receiver.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

enum class HomeRole { kAlone, kHead, kTail };

struct ShardServerOptions {
  PsGroup group;
  Consistency consistency;
  OptimizerConfig optimizer;
  StalenessOptions staleness;
  Compression compression;
  std::uint64_t seed = 1;                       // of the first values of tables' rows
  Duration timeout = std::chrono::seconds(30);  // of handing an answer to the transport, and of the last ones' delivery
  // Of one generation of a job (which begins with none of these).
  std::vector<bool> there = {};  // by worker; empty: all. Who is not there counts as lost
  // What save() of the last generation, or a checkpoint, has given; it outlives this object, and only save() may change
  // it. None: the job begins. What the tail goes on from comes from the head.
  const TrainingState* restored = nullptr;
  HomeRole role = HomeRole::kAlone;
};

struct ShardServerCounters {
  ShardCounters shard;
  std::int64_t dropped = 0;  // messages that did not check out
};

class ShardServer {
 public:
  // `transport` is the endpoint of a shard's home in the group; it and `clock` outlive this object.
  ShardServer(ShardServerOptions options, Transport& transport, const Clock& clock);

  // Serves until every worker has left or is lost; where there are tables, until all have said goodbye. Waits for
  // workers as long as they take, and for the shard's other home: that they are alive is the control plane's to watch.
  // Fails with invalid argument if the job could not start (the workers' layouts differ), with data loss if `restored`
  // lacks something, with cancelled after transport.interrupt(), and with what the transport or memory fails with.
  // Once, on the endpoint's thread; no message of the endpoint is alive afterwards.
  Status serve();

  // Tells that worker `rank` is gone, as the control plane has found out. Any thread; heeded within 50 ms. A tail hears
  // it from its head instead, in the order of what that worker has sent.
  void worker_lost(int rank);

  // Calls `report` for each worker that others have waited for here so long, with nothing pushed by it meanwhile: it is
  // gone, or its link is. On the endpoint's thread; before serve(). A tail, which sees what its head lets it see, calls
  // nothing.
  void on_missing(Duration patience, std::function<void(int worker)> report);
  // While `is_excused` says so, nobody is missing. Before serve().
  void excuse_missing(std::function<bool()> is_excused) { is_excused_ = std::move(is_excused); }

  // Asks for the shard's state, for a checkpoint: of the moment at which `version` updates have been made, chunk by
  // chunk, where they are made together, and else of now. `memory` is used again. `done` is called on the endpoint's
  // thread, once: with the state, with invalid argument if that version has been passed, or with cancelled if serve()
  // ends before, or, then on this thread, has. Any thread, also from within `done`; heeded within 50 ms.
  using StateDone = std::function<void(Result<TrainingState>)>;
  void save_when(std::int64_t version, TrainingState memory, StateDone done);

  // When serve() has returned: what the shard goes on from in the next generation, as options.restored; `state` may be
  // that of this one. False, and nothing is changed, if there is nothing: the job has not begun, or a tail has not got
  // its state yet.
  bool save(TrainingState& state) const;

  // To be read when serve() has returned.
  ShardServerCounters counters() const;

 private:
  struct Request {
    ShardCut cut;
    StateDone done;
  };

  Status begin();
  Status receive_state();
  void make_shard(const TrainingState* restored);
  Status serve_until_done();
  // The next message, or none within the time after which other matters are looked at.
  Result<std::optional<Message>> receive();
  Status take_lost_workers();
  Status lose(int worker);
  void look_for_missing();
  void take_requests();
  void advance_cuts();
  // Whether a cut tells what workers have: all the same, and not what the shard has.
  bool keeps_mirrors() const {
    return options_.compression.of_answers() && options_.consistency.answers_all_the_same();
  }
  void end_cuts();
  Status ended() const;
  // Whether the message, whose header is then in incoming_, is one that a worker sends to this shard, by whatever way;
  // it is then from that worker.
  bool take_header(Message& message);
  Status forward(const Message& message);
  // What came of telling the tail something: who cannot reach it serves nobody any more, until the next generation.
  Status told_tail(const Status& status);
  Status handle(Message message);
  Shard::Answers dispatch(const Message& message);
  // What the message, whose header is in incoming_, carries; fails with invalid argument if that cannot be read.
  Result<std::span<const float>> floats_in(const Message& message);
  // A copy of the keys that the message carries, until the next one: its sender may write where they lie, and would
  // else change what has been checked.
  Shard::Answers take_join(int from, std::span<const std::byte> payload);
  RowKeys own_keys(const Message& message);
  Status finish(int from, const Shard::Answers& answers);
  void drop(int from, const std::string& reason);

  ShardServerOptions options_;
  Transport& transport_;
  const Clock& clock_;
  int number_;                          // of the shard
  std::optional<Forwarder> to_tail_;    // a head's
  bool is_cut_off_ = false;             // a head, whose tail is out of reach
  StateReceiver received_;              // a tail's
  std::optional<Shard> shard_;          // a tail's from when it has its state
  std::optional<ShardCodec> codec_;     // where anything is compressed
  std::optional<AnswerSender> sender_;  // with the shard
  HeldMessages held_;
  std::optional<MissingWorkers> missing_;  // where answers may wait for others, and somebody wants to know
  std::function<void(int worker)> report_missing_;
  std::function<bool()> is_excused_;
  std::vector<Request> cuts_;
  wire::Header incoming_;     // reused
  std::vector<RowKey> keys_;  // that a message has brought; reused
  std::int64_t dropped_ = 0;

  std::mutex mutex_;
  std::vector<int> lost_;          // guarded by mutex_
  std::vector<Request> requests_;  // guarded by mutex_
  bool has_ended_ = false;         // guarded by mutex_: serve() has returned, or is about to
};

}  // namespace syncopate::ps
