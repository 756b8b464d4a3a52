// RunConfig: everything that a person may decide about a run, and the one home of it. Plain values; what each is called
// outside, its range and its sentence stand in option_table.cc, from which --help, the config file and the record of
// the run all come.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/schedule/schedule.h"
#include "allreduce/strategy/sparse_exchange.h"
#include "common/clock.h"
#include "common/codec/codec_config.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/optimizer.h"
#include "common/status.h"
#include "common/transport/link_shape.h"
#include "experiments/config/checkpoint_interval.h"
#include "experiments/config/evaluation_interval.h"
#include "experiments/config/fault_schedule.h"
#include "experiments/config/host_list.h"
#include "ps/compression.h"
#include "ps/policy/consistency.h"
#include "ps/policy/push_scheduler.h"
#include "ps/policy/sharding.h"
#include "ps/policy/staleness.h"
#include "worker/backend/precision.h"
#include "worker/recommender/embedding_kind.h"
#include "worker/straggling.h"

namespace syncopate::experiments {

enum class Mode { kLocal, kPs, kAllreduce };
enum class DeviceKind { kAuto, kCpu, kCuda };
// Our schedules by their names; then the libraries with wires of their own.
enum class CollectiveKind {
  kAuto,
  kDirect,
  kRing,
  kHalvingDoubling,
  kDoubling,
  kTree,
  kBinomialTree,
  kHierarchical,
  kMpi,
  kNccl
};
enum class TransportKind { kAuto, kShm, kIpc, kTcp, kSockets };
enum class LauncherKind { kLocal, kMpirun };
enum class BackendKind { kOneDnn, kReference };
enum class StalenessRate { kKeep, kDivide };
enum class WorkDivision { kShared, kQuota };
// kInStep: partners meet after the same step; kAsync: whenever one of them asks.
enum class Gossip { kOff, kInStep, kAsync };

inline constexpr std::int64_t kMostSyncEvery = 1000000;

// As flags and files spell them: "ps", "cuda", "ring", "shm", "mpirun", "onednn".
const char* name_of(Mode value);
const char* name_of(DeviceKind value);
const char* name_of(CollectiveKind value);
const char* name_of(TransportKind value);
const char* name_of(LauncherKind value);
const char* name_of(BackendKind value);
const char* name_of(StalenessRate value);
const char* name_of(WorkDivision value);
const char* name_of(worker::EmbeddingKind value);

// Zero (or an empty text) where it says so means "not given"; resolve() then puts in what will run.
struct RunConfig {
  // The job
  Mode mode = Mode::kLocal;
  int workers = 0;  // 0: 1 under local, a worker for each slot of the hosts, else 2
  LauncherKind launcher = LauncherKind::kLocal;
  TransportKind transport = TransportKind::kAuto;
  int connections = 1;                    // to each peer, over ipc and tcp
  std::optional<LinkShape> shape;         // none: the wire as it is
  DeviceKind device = DeviceKind::kAuto;  // settled by place() before anything runs
  bool share_gpu = false;
  worker::Stragglers stragglers;
  FaultSchedule faults;
  CodecConfig compress;  // of gradients on their way: kind, ratio and rank; codec_of() has all
  Int8Rounding int8_rounding = Int8Rounding::kNearest;
  std::int64_t compress_warmup = 0;  // epochs
  CompressMomentum compress_momentum = CompressMomentum::kOff;

  // Several hosts
  std::vector<HostSlots> hosts;  // empty: this one
  std::string remote_shell = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5";
  std::string remote_program;  // empty: where it lies here
  std::string listen_address;  // empty: chosen when the run begins, and recorded

  // Parameter servers
  int servers = 1;
  int shards_per_server = 1;
  ps::Consistency consistency;                        // async
  WorkDivision work = WorkDivision::kShared;          // where workers do not wait for each other in each step
  int backup_workers = 0;                             // sync only
  double elastic_alpha = 0;                           // easgd only; 0: 0.9 / workers
  StalenessRate staleness_lr = StalenessRate::kKeep;  // this and the next where stale gradients are applied
  ps::DelayCompensation delay_compensation;
  bool momentum_correction = false;
  ps::ShardingPolicy sharding = ps::ShardingPolicy::kBalanced;
  std::int64_t chunk_bytes = 0;  // 0: usual_chunk_bytes(transport)
  int pipeline_depth = 0;
  bool overlap_forward = false;
  ps::PushOrder push_order = ps::PushOrder::kFifo;
  bool compress_answers = true;  // where gradients are compressed

  // Allreduce
  CollectiveKind collective = CollectiveKind::kAuto;
  std::int64_t bucket_bytes = 1024 * 1024;  // 0: auto, searched for in the first steps
  std::int64_t segment_bytes = 512 * 1024;
  bool overlap = true;
  std::int64_t sync_every = 1;  // steps; 1: gradients are summed in each
  Gossip gossip = Gossip::kOff;
  allreduce::SparseExchange sparse_exchange = allreduce::SparseExchange::kAuto;

  // Model and data
  std::string model = "mlp";
  std::string dataset = "digits";
  std::string data_dir = "data";
  std::int64_t train_samples = 60000;                                 // generated data only
  std::int64_t test_samples = 10000;                                  // generated data only
  int context = 64;                                                   // texts only
  std::int64_t table_rows = 100000;                                   // of recommenders, where the data does not say
  worker::EmbeddingKind embeddings = worker::EmbeddingKind::kSparse;  // of recommenders
  bool augment = true;                                                // cifar10 only
  BackendKind backend = BackendKind::kOneDnn;                         // on the CPU
  worker::Precision precision = worker::Precision::kFp32;             // on a GPU

  // Training
  std::string optimizer = "adam";  // sgd, momentum, nesterov, adam, adamw, adagrad, ftrl
  double learning_rate = 0;        // 0: usual_learning_rate(optimizer)
  std::string lr_schedule = "constant";
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decay_all = false;
  std::int64_t adam_freeze_variance = 0;  // updates; 0: never
  double initial_accumulator = 0;
  double l1 = 0;
  double l2 = 0;
  double ftrl_beta = 1;
  int batch_size = 64;                 // samples a step and worker
  std::int64_t global_batch_size = 0;  // samples a step of all workers; 0: batch_size was held fixed
  std::int64_t epochs = 3;
  std::int64_t steps = 0;                            // of one worker; 0: epochs decides
  std::optional<EvaluationInterval> evaluate_every;  // none: as EvaluationPoints has it
  double target_accuracy = 0;                        // 0: none
  bool stop_at_target = false;
  std::uint64_t seed = 1;       // of repeat 0; repeat r of a run has seed + r
  std::uint64_t data_seed = 1;  // generated data only; the same in all repeats

  // Checkpoints
  std::optional<CheckpointInterval> checkpoint_every;  // none: never
  int keep = 2;                                        // of them, the newest
  std::string resume;                                  // where they lie that a run goes on from; empty: from none
  std::string checkpoint_key_file;                     // by whose key they are authenticated; empty: they are not

  // Survival
  bool elastic = false;         // allreduce only
  int replicas = 0;             // of each server
  double respawn_seconds = -1;  // below 0: never

  // The run
  int repeat = 1;
  int warmup_steps = 10;
  double timeout_seconds = 30;
  double stall_warning_seconds = -1;  // allreduce only; 0: never, below: usual_stall_warning_seconds(timeout)
  std::string output;                 // empty: resolve() names it
  bool dry_run = false;
};

double usual_learning_rate(const std::string& optimizer);

// 5 s: longer than any step that goes well, and a person still reads it before the verdict that half of the usual
// timeout brings. With a short timeout, a quarter of that.
double usual_stall_warning_seconds(double timeout_seconds);

// 256 KiB over shared memory, whose updates and copies then stay in a core's cache; 1 MiB over ipc and tcp, where each
// message costs wake-ups of the threads that move its bytes.
std::int64_t usual_chunk_bytes(TransportKind transport);

// Puts in what was left open, so that the record shows what ran: workers, learning rate, batch size (from the global
// one), transport (shared memory on one host; between several tcp for ps, sockets for allreduce), collective (NCCL on
// GPUs, direct in shared memory, unless the link is shaped; a ring under asynchronous gossip; else auto stays, and
// chooses by size), output directory.
// `stamp` is calendar_stamp()'s. Idempotent. Requires a config that validate() and place() have accepted.
RunConfig resolve(RunConfig config, const std::string& stamp);

// Combinations that cannot work, in one line: what is wrong and what would be right. Single values have been checked by
// the option table. Accepts configs before and after resolve().
Status validate(const RunConfig& config);

inline bool is_ps(const RunConfig& config) { return config.mode == Mode::kPs; }
inline bool is_allreduce(const RunConfig& config) { return config.mode == Mode::kAllreduce; }
inline bool is_distributed(const RunConfig& config) { return config.mode != Mode::kLocal; }

// Whether processes of the run are on other hosts than the coordinator.
bool spans_hosts(const RunConfig& config);
// The hosts that workers and servers are laid over; without --hosts the coordinator's, with a slot for each worker.
// `config` has been through resolve().
std::vector<HostSlots> hosts_of(const RunConfig& config);

// What the config means for the rooms that do the work. The config must be one that validate() accepts.
// Whether gradients and weights go through the host's memory between a GPU and the wire.
bool is_staged(const RunConfig& config);
// Whether our own schedules, over a transport, or the direct collective carry the gradients.
bool has_own_collective(const RunConfig& config);
// The schedule by which gradients are summed; none where a library does it, or where it is chosen by size (auto).
std::optional<allreduce::ScheduleKind> schedule_kind_of(const RunConfig& config);
// "shm", "ipc", "tcp"; "mpi" and "nccl" where these carry the gradients; "none" under local.
const char* transport_that_runs(const RunConfig& config);
// Whether the data set is drawn rather than read, and in the sizes that are asked for.
bool generates_data(const RunConfig& config);
// Whether its training images are cropped and flipped, where that is wanted.
bool has_crops(const RunConfig& config);
// Whether its samples are texts.
bool learns_text(const RunConfig& config);
// The name that worker::open_dataset takes: "digits:60000-10000", "mnist", "text:64", "clicks:100000".
std::string dataset_spec(const RunConfig& config);
// The name that worker::make_model takes: "mlp", "ncf:16:dense".
std::string model_spec(const RunConfig& config);
OptimizerConfig optimizer_of(const RunConfig& config);
// Over how many shards, and how, the weights are laid under ps.
std::size_t shards_of(const RunConfig& config);
ps::Sharding sharding_of(const RunConfig& config);
// Whether workers make updates of their own under allreduce, and average weights instead of gradients.
bool averages_weights(const RunConfig& config);
// Of these, whether they never agree on any weights before the end.
inline bool has_replicas_of_their_own(const RunConfig& config) {
  return config.mode == Mode::kAllreduce && config.gossip != Gossip::kOff;
}
// Of these, whether they never wait for each other's steps either (AD-PSGD).
inline bool gossips_asynchronously(const RunConfig& config) {
  return config.mode == Mode::kAllreduce && config.gossip == Gossip::kAsync;
}
// How results and summaries call the way in which weights are averaged: "sync-every:8", "gossip:1", "gossip-async:4".
// Only where they are.
std::string averaging_of(const RunConfig& config);
// Whether gradients are compressed, and whether they can be: they are not sent where weights are averaged, or workers
// make steps of their own, and NCCL sums them in the memory of GPUs.
bool compresses(const RunConfig& config);
bool may_compress(const RunConfig& config);
// The codec of gradients with all that it needs to know; none where they are not compressed.
CodecConfig codec_of(const RunConfig& config);
// Whether workers keep the velocity, as Lin et al. 2018 do, and so the update is plain sgd; and whether they can.
bool corrects_momentum(const RunConfig& config);
bool may_correct_momentum(const RunConfig& config);
// Whether Adam goes on by 1-bit Adam (Tang et al. 2021) once its variance is frozen: nothing is compressed before, and
// momentum is afterwards.
bool is_one_bit_adam(const RunConfig& config);
// What workers and shards compress.
ps::Compression compression_of(const RunConfig& config);
// How worker `rank` is slowed: half of the timeout is the longest, since others wait for it meanwhile.
worker::StragglingOptions straggling_of(const RunConfig& config, int rank);
// After which time a collective operation that not all ranks have come to is reported; zero: never.
Duration stall_warning_of(const RunConfig& config);
// Whether it can be: NCCL's operations are given to the GPU, and not waited for one by one; those of pairs are not all
// ranks' affair.
bool may_report_stalls(const RunConfig& config);
// Whether a worker may run ahead of its answers, begin a forward pass before it has them all, and choose what it pushes
// first. Where it may not, the option is as if it had not been given.
bool may_run_ahead(const RunConfig& config);
bool may_overlap_forward(const RunConfig& config);
bool may_order_pushes(const RunConfig& config);
// Whether workers may draw batches from one queue of the whole job, and whether they do.
bool may_share_work(const RunConfig& config);
bool shares_work(const RunConfig& config);
// Batches of one worker that a step of the whole job takes: of all workers, but with backup workers of those that an
// update needs.
int batches_a_step(const RunConfig& config);
// With the backup workers.
ps::Consistency consistency_of(const RunConfig& config);
ps::StalenessOptions staleness_of(const RunConfig& config);
LearningRateSchedule schedule_of(const RunConfig& config);

}  // namespace syncopate::experiments
