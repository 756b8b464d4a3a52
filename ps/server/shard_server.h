// ShardServer: drives one Shard: takes messages from its endpoint, passes them to the shard, and sends the responses
// that are due. It makes no decisions. It alone touches its shard, so there is no lock on the data path.
//
// With standbys a shard has two replicas, each with a server. The head receives what workers send, forwards it to the
// tail in the order in which it takes it, and answers nothing; the tail applies that to its own shard, and answers. So
// a response means that both replicas have applied, or will apply, what is answered (README.md, "Replication").
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/server_figures.h"
#include "common/status.h"
#include "common/trace/tracer.h"
#include "common/training_state.h"
#include "common/transport/transport.h"
#include "ps/compression.h"
#include "ps/group.h"
#include "ps/server/answer_sender.h"
#include "ps/server/forwarder.h"
#include "ps/server/held_messages.h"
#include "ps/server/missing_workers.h"
#include "ps/server/push_account.h"
#include "ps/server/shard.h"
#include "ps/server/shard_codec.h"
#include "ps/server/shard_cut.h"
#include "ps/server/shard_work.h"
#include "ps/server/state_receiver.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

enum class ReplicaRole { kAlone, kHead, kTail };

struct ShardServerOptions {
  PsGroup group;
  Consistency consistency;
  OptimizerConfig optimizer;
  StalenessOptions staleness;
  Compression compression;
  std::uint64_t seed = 1;                       // seeds the first values of tables' rows
  bool agrees_on_rates = false;                 // as ShardOptions::agrees_on_rates
  Duration timeout = std::chrono::seconds(30);  // for passing a response to the transport, and for delivery of the last
                                                // ones
  bool leaves_out = false;                      // as ShardOptions has it; so has the next
  HostGroups hosts = {};                        // as ShardOptions has it
  const UpdateFunction* function = nullptr;     // as ShardOptions has it; must outlive this object
  // The following describe one membership epoch of a job; the defaults are for a job that begins.
  std::vector<bool> there = {};  // by worker; empty: all. A worker that is not there counts as lost
  // The state from save() of the last membership epoch, or from a checkpoint. It must outlive this object, and only
  // save() may change it. Null: the job begins. A tail receives its state from the head instead.
  const TrainingState* restored = nullptr;
  ReplicaRole role = ReplicaRole::kAlone;
  Tracer* tracer = nullptr;  // records pushes, updates and answers, if set; must outlive this object
};

struct ShardServerCounters {
  ShardCounters shard;
  ShardLoad load;
  std::int64_t dropped = 0;  // messages that failed the checks
};

// Returns what a shard has done, over an endpoint that has counted so; `core_wait` is of the thread that served.
ServerFigures figures_of(const ShardServerCounters& counters, const TransportCounters& transport,
                         const std::optional<Duration>& core_wait);

class ShardServer {
 public:
  // `transport` is the endpoint of one of the shard's replicas in the group. It and `clock` must outlive this object.
  ShardServer(ShardServerOptions options, Transport& transport, const Clock& clock);

  // Serves until every worker has left or is lost; if there are tables, until all have said goodbye. Waits without
  // limit for workers and for the shard's other replica: the control plane watches that they are alive. Fails with
  // invalid argument if the job could not start (the workers' layouts differ), with data loss if `restored` lacks
  // something, with cancelled after transport.interrupt(), and with what the transport or memory fails with. Call it
  // once, on the endpoint's thread; no message of the endpoint is alive afterwards.
  Status serve();

  // Reports that worker `rank` is lost, as the control plane has found. Any thread; takes effect within 50 ms. A tail
  // learns it from its head instead, in order with that worker's messages.
  void worker_lost(int rank);

  // Calls `report` for each worker that others have waited for here for `patience` without a push of it meanwhile: it,
  // or its link, is gone. The call is on the endpoint's thread. Call on_missing before serve(). A tail, which sees only
  // what its head forwards, reports nothing.
  void on_missing(Duration patience, std::function<void(int worker)> report);
  // While `is_excused` returns true, nobody is missing. Call it before serve().
  void excuse_missing(std::function<bool()> is_excused) { is_excused_ = std::move(is_excused); }

  // Requests the shard's state, for a checkpoint. If updates are made together, it is the state at which `version`
  // updates have been made, chunk by chunk; otherwise it is the current one. `memory` is reused. `done` is called once,
  // on the endpoint's thread: with the state, with invalid argument if that version has been passed, or with cancelled
  // if serve() ends first. If serve() has ended already, `done` is called on this thread. Any thread, also from within
  // `done`; takes effect within 50 ms.
  using StateDone = std::function<void(Result<TrainingState>)>;
  void save_when(std::int64_t version, TrainingState memory, StateDone done);

  // Requires that serve() has returned. Stores what the shard goes on from in the next membership epoch, as
  // options.restored; `state` may be the one of this epoch. Returns false, and changes nothing, if there is nothing to
  // store: the job has not begun, or a tail does not have its state yet.
  bool save(TrainingState& state) const;

  // Requires that serve() has returned.
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
  // Returns the next message, or none if none arrives within the time after which other duties are due.
  Result<std::optional<Message>> receive();
  Status take_lost_workers();
  Status lose(int worker);
  void look_for_missing();
  // Ends the meetings whose grace has passed.
  Status end_meetings();
  void take_requests();
  void advance_cuts();
  // Returns whether a cut includes what workers have: the same for all of them, and different from what the shard has.
  bool keeps_mirrors() const {
    return options_.compression.of_answers() && options_.consistency.answers_all_the_same();
  }
  void end_cuts();
  Status ended() const;
  // Returns whether the message is one that a worker sends to this shard, directly or through the head. Its header is
  // then in incoming_, and it counts as from that worker.
  bool take_header(Message& message);
  Status forward(const Message& message);
  // Handles the result of a send to the tail: a head that cannot reach its tail serves nobody until the next membership
  // epoch.
  Status replicated(const Status& status);
  Status handle(Message message);
  Shard::Answers dispatch(const Message& message);
  // Returns the floats that the message, whose header is in incoming_, carries. Fails with invalid argument if they
  // cannot be read.
  Result<std::span<const float>> floats_in(const Message& message);
  // own_keys() returns a copy of the keys that the message carries, valid until the next one. A copy is needed because
  // the sender may write where they lie, and so change what has been checked.
  template <typename Push>
  Step step_of(int worker, const Push& push) const;  // of a push that is incoming_
  Shard::Answers take_join(int from, std::span<const std::byte> payload);
  RowKeys own_keys(const Message& message);
  Status finish(int from, const Shard::Answers& answers);
  void drop(int from, const std::string& reason);

  ShardServerOptions options_;
  Transport& transport_;
  const Clock& clock_;
  int shard_number_;  // in the group
  int number_;        // the one by which people know it
  ShardWork work_;
  PushAccount account_;
  std::optional<Forwarder> to_tail_;    // in a head
  bool is_cut_off_ = false;             // in a head whose tail is out of reach
  StateReceiver received_;              // in a tail
  std::optional<Shard> shard_;          // in a tail only once it has its state
  std::optional<ShardCodec> codec_;     // if anything is compressed
  std::optional<AnswerSender> sender_;  // exists with the shard
  HeldMessages held_;
  std::optional<MissingWorkers> missing_;  // if responses may wait for others, and on_missing was called
  std::function<void(int worker)> report_missing_;
  std::function<bool()> is_excused_;
  std::vector<Request> cuts_;
  wire::Header incoming_;     // reused
  std::vector<RowKey> keys_;  // that a message brought; reused
  std::int64_t dropped_ = 0;

  std::mutex mutex_;
  std::vector<int> lost_;          // guarded by mutex_
  std::vector<Request> requests_;  // guarded by mutex_
  bool has_ended_ = false;         // guarded by mutex_: serve() has returned, or is about to
};

}  // namespace syncopate::ps
