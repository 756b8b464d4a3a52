// RunConfig: everything that a person may decide about a run, in one place, as plain values. The name, the range and
// the description of each field stand in option_table.cc, from which --help, the config file and the record of the run
// are made.
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
// Our own schedules by their names, then the libraries that have transports of their own.
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
// kInStep: partners average after the same step; kAsync: whenever one of them asks.
enum class Gossip { kOff, kInStep, kAsync };

inline constexpr std::int64_t kMostSyncEvery = 1000000;

// Return the names that flags and files use: "ps", "cuda", "ring", "shm", "mpirun", "onednn".
const char* name_of(Mode value);
const char* name_of(DeviceKind value);
const char* name_of(CollectiveKind value);
const char* name_of(TransportKind value);
const char* name_of(LauncherKind value);
const char* name_of(BackendKind value);
const char* name_of(StalenessRate value);
const char* name_of(WorkDivision value);
const char* name_of(worker::EmbeddingKind value);

// Where a comment says so, zero or an empty text means "not given". resolve() then sets the value that will run.
struct RunConfig {
  // The job
  Mode mode = Mode::kLocal;
  int workers = 0;  // 0: 1 under local, one for each slot of the hosts, else 2
  LauncherKind launcher = LauncherKind::kLocal;
  TransportKind transport = TransportKind::kAuto;
  int connections = 1;                    // to each peer, over ipc and tcp
  std::optional<LinkShape> shape;         // none: the link is not emulated
  DeviceKind device = DeviceKind::kAuto;  // place() replaces kAuto before anything runs
  bool share_gpu = false;
  worker::Stragglers stragglers;
  FaultSchedule faults;
  CodecConfig compress;  // gradient compression: kind, ratio and rank; codec_of() has all settings
  Int8Rounding int8_rounding = Int8Rounding::kNearest;
  std::int64_t compress_warmup = 0;  // epochs without compression
  CompressMomentum compress_momentum = CompressMomentum::kOff;

  // Several hosts
  std::vector<HostSlots> hosts;  // empty: this host only
  std::string remote_shell = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5";
  std::string remote_program;  // empty: the same path as here
  std::string listen_address;  // empty: chosen when the run begins, and recorded

  // Parameter servers
  int servers = 1;
  int shards_per_server = 1;
  ps::Consistency consistency;                        // async
  WorkDivision work = WorkDivision::kShared;          // used where workers do not wait for each other in each step
  int backup_workers = 0;                             // sync only
  double elastic_alpha = 0;                           // easgd only; 0: 0.9 / workers
  StalenessRate staleness_lr = StalenessRate::kKeep;  // this and the next two: used where stale gradients are applied
  ps::DelayCompensation delay_compensation;
  bool momentum_correction = false;
  ps::ShardingPolicy sharding = ps::ShardingPolicy::kBalanced;
  std::int64_t chunk_bytes = 0;  // 0: usual_chunk_bytes(transport)
  int pipeline_depth = 0;
  bool overlap_forward = false;
  ps::PushOrder push_order = ps::PushOrder::kFifo;
  bool compress_answers = true;  // used where gradients are compressed

  // Allreduce
  CollectiveKind collective = CollectiveKind::kAuto;
  std::int64_t bucket_bytes = 1024 * 1024;  // 0: auto, chosen by trial in the first steps
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
  int context = 64;                                                   // tokens; text models only
  std::int64_t table_rows = 100000;                                   // recommenders only, where the data does not say
  worker::EmbeddingKind embeddings = worker::EmbeddingKind::kSparse;  // recommenders only
  bool augment = true;                                                // cifar10 only
  BackendKind backend = BackendKind::kOneDnn;                         // used on the CPU
  worker::Precision precision = worker::Precision::kFp32;             // used on a GPU

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
  int batch_size = 64;                 // samples per step and worker
  std::int64_t global_batch_size = 0;  // samples per step of all workers; 0: batch_size applies
  std::int64_t epochs = 3;
  std::int64_t steps = 0;                            // steps of one worker; 0: epochs decides
  std::optional<EvaluationInterval> evaluate_every;  // none: the default of EvaluationPoints
  double target_accuracy = 0;                        // 0: none
  bool stop_at_target = false;
  std::uint64_t seed = 1;       // seed of repeat 0; repeat r of a run has seed + r
  std::uint64_t data_seed = 1;  // generated data only; the same in all repeats

  // Checkpoints
  std::optional<CheckpointInterval> checkpoint_every;  // none: never
  int keep = 2;                                        // how many of the newest checkpoints are kept
  std::string resume;  // the folder of the checkpoints to resume from; empty: the run begins anew
  // the file of the key that authenticates checkpoints; empty: they are not authenticated
  std::string checkpoint_key_file;

  // Survival
  bool elastic = false;         // allreduce only
  int replicas = 0;             // standbys of each server
  double respawn_seconds = -1;  // below 0: a lost process is not restarted

  // The run
  int repeat = 1;
  int warmup_steps = 10;
  double timeout_seconds = 30;
  double stall_warning_seconds = -1;  // allreduce only; 0: never, below 0: usual_stall_warning_seconds(timeout)
  std::string output;                 // empty: resolve() names it
  bool dry_run = false;
};

double usual_learning_rate(const std::string& optimizer);

// Returns 5 s: longer than any step without a problem, and early enough for a person to read the warning before the
// verdict that half of the usual timeout brings. With a short timeout it returns a quarter of that.
double usual_stall_warning_seconds(double timeout_seconds);

// Returns 256 KiB for shared memory, so that updates and copies stay in a core's cache, and 1 MiB for ipc and tcp,
// where each message wakes the threads that move its bytes.
std::int64_t usual_chunk_bytes(TransportKind transport);

// Sets what was left open, so that the record shows what ran: workers, learning rate, batch size (from the global one),
// transport, collective and output directory. The transport is shared memory on one host; between several hosts it is
// tcp for ps and sockets for allreduce. The collective is NCCL on GPUs, direct in shared memory unless the link is
// shaped, and a ring under asynchronous gossip; otherwise it stays auto and is chosen by size. `stamp` is from
// calendar_stamp(). Idempotent. Requires a config that validate() and place() have accepted.
RunConfig resolve(RunConfig config, const std::string& stamp);

// Fails for combinations that cannot work, saying in one line what is wrong and what would be right. The option table
// has already checked single values. Accepts configs before and after resolve().
Status validate(const RunConfig& config);

inline bool is_ps(const RunConfig& config) { return config.mode == Mode::kPs; }
inline bool is_allreduce(const RunConfig& config) { return config.mode == Mode::kAllreduce; }
inline bool is_distributed(const RunConfig& config) { return config.mode != Mode::kLocal; }

// Returns whether some processes of the run are on other hosts than the coordinator.
bool spans_hosts(const RunConfig& config);
// Returns the hosts that workers and servers are placed on; without --hosts it is the coordinator's, with a slot for
// each worker. `config` must have been through resolve().
std::vector<HostSlots> hosts_of(const RunConfig& config);

// What the config means for the parts that do the work. The config must be one that validate() accepts. Returns whether
// gradients and weights are copied through host memory between a GPU and the network.
bool is_staged(const RunConfig& config);
// Returns whether our own schedules (over a transport) or the direct collective carry the gradients.
bool has_own_collective(const RunConfig& config);
// Returns the schedule that sums gradients; none where a library sums them, or where the size decides (auto).
std::optional<allreduce::ScheduleKind> schedule_kind_of(const RunConfig& config);
// Returns "shm", "ipc" or "tcp"; "mpi" or "nccl" where these carry the gradients; "none" under local.
const char* transport_that_runs(const RunConfig& config);
// Returns whether the data set is generated, in the sizes that are asked for, rather than read.
bool generates_data(const RunConfig& config);
// Returns whether its training images can be cropped and flipped.
bool has_crops(const RunConfig& config);
// Returns whether its samples are texts.
bool learns_text(const RunConfig& config);
// Returns the name that worker::open_dataset takes: "digits:60000-10000", "mnist", "text:64", "clicks:100000".
std::string dataset_spec(const RunConfig& config);
// Returns the name that worker::make_model takes: "mlp", "ncf:16:dense".
std::string model_spec(const RunConfig& config);
OptimizerConfig optimizer_of(const RunConfig& config);
// Return over how many shards the weights are divided under ps, and how.
std::size_t shards_of(const RunConfig& config);
ps::Sharding sharding_of(const RunConfig& config);
// Returns whether workers make updates of their own under allreduce, and average weights instead of gradients.
bool averages_weights(const RunConfig& config);
// Returns whether such workers never agree on common weights before the end.
inline bool has_replicas_of_their_own(const RunConfig& config) {
  return config.mode == Mode::kAllreduce && config.gossip != Gossip::kOff;
}
// Returns whether such workers do not wait for each other's steps either (AD-PSGD).
inline bool gossips_asynchronously(const RunConfig& config) {
  return config.mode == Mode::kAllreduce && config.gossip == Gossip::kAsync;
}
// Returns the name of the averaging method in results and summaries: "sync-every:8", "gossip:1", "gossip-async:4".
// Requires averages_weights(config).
std::string averaging_of(const RunConfig& config);
// Return whether gradients are compressed, and whether they can be. They cannot where they are not sent (weights are
// averaged, or workers make steps of their own), and where NCCL sums them in the memory of GPUs.
bool compresses(const RunConfig& config);
bool may_compress(const RunConfig& config);
// Returns the codec of gradients with all its settings; none where they are not compressed.
CodecConfig codec_of(const RunConfig& config);
// Return whether workers keep the velocity, as Lin et al. 2018 do, so that the update is plain sgd; and whether they
// can.
bool corrects_momentum(const RunConfig& config);
bool may_correct_momentum(const RunConfig& config);
// Returns whether Adam continues as 1-bit Adam (Tang et al. 2021) once its variance is frozen. Nothing is compressed
// before that; afterwards momentum is.
bool is_one_bit_adam(const RunConfig& config);
// Returns what workers and shards compress.
ps::Compression compression_of(const RunConfig& config);
// Returns how worker `rank` is slowed. The longest delay is half of the timeout, since others wait for it meanwhile.
worker::StragglingOptions straggling_of(const RunConfig& config, int rank);
// Returns how long a collective operation may wait for missing ranks before it is reported; zero: it never is.
Duration stall_warning_of(const RunConfig& config);
// Returns whether stalls can be reported. They cannot with NCCL, whose operations are queued on the GPU and not waited
// for one by one, or for operations between pairs, which do not concern all ranks.
bool may_report_stalls(const RunConfig& config);
// Return whether a worker may run ahead of the responses to its pushes, may begin a forward pass before it has all of
// them, and may choose what it pushes first. Where it may not, the option has no effect.
bool may_run_ahead(const RunConfig& config);
bool may_overlap_forward(const RunConfig& config);
bool may_order_pushes(const RunConfig& config);
// Return whether workers may draw batches from one queue of the whole job, and whether they do.
bool may_share_work(const RunConfig& config);
bool shares_work(const RunConfig& config);
// Returns how many batches of one worker a step of the whole job takes: one of each worker, or with backup workers as
// many as an update needs.
int batches_a_step(const RunConfig& config);
// Returns the consistency, with the number of backup workers.
ps::Consistency consistency_of(const RunConfig& config);
ps::StalenessOptions staleness_of(const RunConfig& config);
LearningRateSchedule schedule_of(const RunConfig& config);

}  // namespace syncopate::experiments
