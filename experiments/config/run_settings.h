// RunSettings: what a person may decide about a run and what needs no settling, since its default is a value. A
// RunRequest adds what may be left open, a ResolvedRun the same settled. The name, the range and the description of
// each field stand in option_table.cc, from which --help, the config file and the record of a run are made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/schedule/schedule.h"
#include "allreduce/strategy/sparse_exchange.h"
#include "common/clock.h"
#include "common/codec/codec_config.h"
#include "common/on_nan.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/optimizer.h"
#include "common/status.h"
#include "common/transport/link_shape.h"
#include "experiments/config/cluster_description.h"
#include "experiments/config/fault_schedule.h"
#include "experiments/config/host_list.h"
#include "experiments/config/interval.h"
#include "experiments/config/modes.h"
#include "experiments/config/namespace_cluster.h"
#include "experiments/config/optimizer_choice.h"
#include "experiments/config/simulated_cluster.h"
#include "experiments/config/trace_range.h"
#include "experiments/config/variable_list.h"
#include "ps/compression.h"
#include "ps/policy/consistency.h"
#include "ps/policy/push_scheduler.h"
#include "ps/policy/sharding.h"
#include "ps/policy/staleness.h"
#include "simulation/network.h"
#include "worker/backend/precision.h"
#include "worker/data/grammar.h"
#include "worker/data/own/own_options.h"
#include "worker/data/patterns.h"
#include "worker/data/pixel_scale.h"
#include "worker/data/sample_costs.h"
#include "worker/data/shuffle.h"
#include "worker/layers/initialization.h"
#include "worker/pipeline/pipeline_schedule.h"
#include "worker/recommender/embedding_kind.h"
#include "worker/straggling.h"

namespace syncopate::experiments {

enum class DeviceKind { kCpu, kCuda };
// Our own schedules by their names, then the libraries that have transports of their own. kBySize: for each bucket the
// schedule of ours that is fastest for its size; files and flags call it auto. kNcclRing and kNcclTree: NCCL, held to
// one algorithm.
enum class CollectiveKind {
  kBySize,
  kDirect,
  kRing,
  kHalvingDoubling,
  kDoubling,
  kTree,
  kBinomialTree,
  kHierarchical,
  kMpi,
  kNccl,
  kNcclRing,
  kNcclTree
};
constexpr bool is_nccl(CollectiveKind kind) {
  return kind == CollectiveKind::kNccl || kind == CollectiveKind::kNcclRing || kind == CollectiveKind::kNcclTree;
}
enum class TransportKind { kShm, kIpc, kTcp, kSockets };
enum class LauncherKind { kLocal, kMpirun, kSlurm };
enum class BackendKind { kOneDnn, kReference };
enum class StalenessRate { kKeep, kDivide };
enum class WorkDivision { kShared, kQuota };
// Who pushes: each worker, or one of each host the sum of its workers' gradients.
enum class Aggregation { kOff, kHost };
// Which samples a worker trains: any, or those of a part of its own, by label (worker/data/label_parts.h).
enum class DataShard { kRandom, kLabels };
// kInStep: partners average after the same step; kAsync: whenever one of them asks.
enum class Gossip { kOff, kInStep, kAsync };
// How weights and gradients of a sharded state pass between workers: by collectives of all, layer by layer, or from and
// to the one that owns them, whenever a worker comes to that layer.
enum class WeightGather { kCollective, kOnDemand };
// Which tensors of a model with tables go to servers, and which are summed among the workers: tables and the others, or
// what is predicted to be fastest (common/tables/exchange_choice.h).
enum class TensorExchange { kByKind, kAuto };

inline constexpr std::int64_t kMostSyncEvery = 1000000;

// Return the names that flags and files use: "ps", "cuda", "ring", "shm", "mpirun", "onednn".
const char* name_of(DeviceKind value);
const char* name_of(CollectiveKind value);
const char* name_of(TransportKind value);
const char* name_of(LauncherKind value);
const char* name_of(BackendKind value);
const char* name_of(StalenessRate value);
const char* name_of(WorkDivision value);
const char* name_of(Aggregation value);
const char* name_of(DataShard value);
const char* name_of(WeightGather value);
const char* name_of(TensorExchange value);
const char* name_of(worker::EmbeddingKind value);
const char* name_of(worker::WeightInit value);
const char* name_of(worker::PixelScale value);
const char* name_of(worker::Shuffle value);
const char* name_of(worker::Task value);
const char* name_of(worker::Normalisation value);
const char* name_of(ClusterKind value);
const char* name_of(simulation::NetworkModel value);

struct RunSettings {
  // The job
  Mode mode = Mode::kLocal;
  std::vector<std::string> command;  // a program of the person's own, which each worker runs; empty: ours
  LauncherKind launcher = LauncherKind::kLocal;
  std::optional<std::string> mpi_options;  // more words for mpirun, quoted as for a shell
  VariableList environment;                // that processes have besides their own
  VariableList nccl_options;               // the same, of NCCL
  int connections = 1;                     // to each peer, over ipc and tcp
  std::optional<LinkShape> shape;          // none: the link is not emulated
  bool share_gpu = false;                  // placement switches it off where no GPU has to be shared
  worker::Stragglers stragglers;
  worker::SampleCosts sample_costs;
  FaultSchedule faults;
  CodecConfig compress;  // gradient compression: kind, ratio and rank; codec_of() has all settings
  Int8Rounding int8_rounding = Int8Rounding::kNearest;
  std::int64_t compress_warmup = 0;  // epochs without compression
  CompressMomentum compress_momentum = CompressMomentum::kOff;
  double compress_decay = 1;  // what is left of a residual from one gradient to the next

  // The cluster, of which all but these two belong to a simulated one
  ClusterKind cluster = ClusterKind::kReal;
  std::optional<NamespaceCluster> described_namespaces;  // of --cluster=namespaces:HOSTS
  simulation::NetworkModel network = simulation::NetworkModel::kFrames;
  std::optional<ClusterDescription> described_cluster;  // of --cluster=simulated:FILE
  FabricChoice fabric;

  // Several hosts
  std::vector<HostSlots> hosts;  // empty: this host only
  std::string remote_shell = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5";
  std::optional<std::string> remote_program;  // none: the same path as here
  double wait_for_hosts_seconds = 0;          // for hosts that cannot be reached yet

  // Parameter servers
  int servers = 1;         // where they are colocated, workers and spare servers, once a run is resolved
  bool colocated = false;  // each worker's process has a server in it, of the same rank
  int spare_servers = 0;   // colocated only: so many besides, on hosts of their own, with the ranks behind
  int shards_per_server = 1;
  ps::Consistency consistency;                        // async
  WorkDivision work = WorkDivision::kShared;          // used where workers do not wait for each other in each step
  int backup_workers = 0;                             // sync only
  ps::Quorum quorum;                                  // local-sgd only; all
  Aggregation aggregation = Aggregation::kOff;        // sync only
  StalenessRate staleness_lr = StalenessRate::kKeep;  // this and the next two: used where stale gradients are applied
  ps::DelayCompensation delay_compensation;
  bool momentum_correction = false;
  int pipeline_depth = 0;
  bool overlap_forward = false;
  ps::PushOrder push_order = ps::PushOrder::kFifo;
  bool compress_answers = true;  // used where gradients are compressed

  // Allreduce
  std::optional<std::int64_t> bucket_bytes = 1024 * 1024;  // none: chosen by trial in the first steps (auto)
  std::int64_t segment_bytes = 512 * 1024;
  bool overlap = true;
  bool measure_wire = false;    // though its speed is known from an earlier run
  std::int64_t sync_every = 1;  // steps; 1: gradients are summed in each
  double outer_momentum = 0;    // of meetings of all; 0: these are means
  double outer_rate = 1;
  bool outer_nesterov = false;
  std::int64_t sync_fragments = 1;  // of the weights, each of which meets once in sync_every steps
  std::int64_t sync_overlap = 0;    // steps beside which a meeting of all goes on
  Gossip gossip = Gossip::kOff;
  std::int64_t stage = 1;                           // allreduce::ShardingStage
  WeightGather gather = WeightGather::kCollective;  // stage 3 only
  int pipeline = 1;  // stages of the model's chain of layers, a worker each; 1: every worker has all layers
  std::optional<int> microbatches;  // none: as microbatches_of() says
  // Used where there are several stages.
  worker::PipelineSchedule pipeline_schedule = worker::PipelineSchedule::kOneForwardOneBackward;
  int pipeline_chunks = 2;  // of the layers that a stage has; used where the schedule is interleaved
  int tensor = 1;           // workers that have a part of each layer's weights; 1: every worker has whole layers
  TensorExchange exchange = TensorExchange::kByKind;  // hybrid only
  allreduce::SparseExchange sparse_exchange = allreduce::SparseExchange::kAuto;

  // Model and data
  std::string model = "mlp";
  std::string dataset = "digits";
  std::string data_dir = "data";
  std::int64_t train_samples = 60000;                                 // generated data only
  std::int64_t test_samples = 10000;                                  // generated data only
  int context = 64;                                                   // tokens; text models only
  int vocabulary = worker::kUsualVocabulary;                          // characters; grammar only
  int classes = worker::kUsualPatternClasses;                         // patterns only
  std::int64_t table_rows = 100000;                                   // recommenders only, where the data does not say
  worker::EmbeddingKind embeddings = worker::EmbeddingKind::kSparse;  // recommenders only
  // Data of the person's own only: see worker/data/own/own_options.h
  std::optional<std::string> target, ignore, test_data;
  double test_fraction = 0.2;
  worker::Task task = worker::Task::kAuto;
  worker::Normalisation normalise = worker::Normalisation::kStandard;
  std::optional<int> image_size;                                  // of patterns, too
  bool augment = true;                                            // cifar10 only
  std::optional<double> validation;                               // part that is held out; images and texts only
  DataShard shard = DataShard::kRandom;                           // images only
  worker::WeightInit init = worker::WeightInit::kByLayer;         // models of images only
  worker::PixelScale pixel_scale = worker::PixelScale::kShifted;  // images of ink on paper only
  worker::Shuffle shuffle = worker::Shuffle::kGlobal;
  bool drop_last = true;                                   // what does not fill a global batch
  int prefetch = 8;                                        // batches that are prepared ahead
  BackendKind backend = BackendKind::kOneDnn;              // used on the CPU
  worker::Precision precision = worker::Precision::kFp32;  // used on a GPU
  bool cuda_graphs = true;                                 // used where a GPU updates the weights

  // Training
  OptimizerChoice optimizer = OptimizerChoice::kAdam;
  LearningRateSchedule lr_schedule;
  double momentum = 0.9;
  double rho = 0.9;
  double trust_coefficient = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decay_all = false;
  std::optional<std::int64_t> adam_freeze_variance;  // updates; none: never
  double initial_accumulator = 0;
  double l1 = 0;
  double l2 = 0;
  double ftrl_beta = 1;
  std::optional<std::int64_t> global_batch_size;  // samples per step of all workers; none: batch_size was given
  std::int64_t epochs = 3;
  std::optional<std::int64_t> steps;                 // steps of one worker; none: epochs decides
  std::optional<EvaluationInterval> evaluate_every;  // none: the default of EvaluationPoints
  double target_accuracy = 0;                        // 0: none
  bool stop_at_target = false;
  std::uint64_t seed = 1;       // seed of repeat 0; repeat r of a run has seed + r
  std::uint64_t data_seed = 1;  // data that is generated or of the person's own only; the same in all repeats

  // Checkpoints
  std::optional<CheckpointInterval> checkpoint_every;  // none: never
  int keep = 2;                                        // how many of the newest checkpoints are kept
  double grace_seconds = 15;                           // for one more, after SIGTERM
  // the folder of the checkpoints to resume from; none: the run begins anew
  std::optional<std::string> resume;
  // the file of the key that authenticates checkpoints; none: they are not authenticated
  std::optional<std::string> checkpoint_key_file;

  // Survival
  bool elastic = false;                   // allreduce only
  int replicas = 0;                       // standbys of each server
  std::optional<double> respawn_seconds;  // none: a lost process is not restarted

  OnNan on_nan = OnNan::kStop;  // what becomes of the run when something in it is not a finite number

  // The run
  int repeat = 1;
  double timeout_seconds = 30;
  std::optional<TraceRange> trace;  // none: nothing is traced
  bool tensorboard = false;
  std::optional<int> metrics;  // port on which metrics are served, 0: a free one; none: they are not
  bool dry_run = false;
};

inline bool is_distributed(const RunSettings& config) { return traits_of(config.mode).is_distributed; }
inline bool has_servers(const RunSettings& config) { return traits_of(config.mode).has_servers; }
inline bool sums_among_workers(const RunSettings& config) { return traits_of(config.mode).sums_among_workers; }
inline bool replicates_state(const RunSettings& config) { return traits_of(config.mode).replicates_state; }
// Returns whether workers have a share of the state each, and sum among themselves.
inline bool shards_state(const RunSettings& config) { return traits_of(config.mode).shards_state(); }
inline bool shards_weights(const RunSettings& config) { return shards_state(config) && config.stage >= 3; }
// Returns whether workers have some of the model's layers each, and several of them train a batch together (pipeline).
inline bool is_pipelined(const RunSettings& config) {
  const ModeTraits& mode = traits_of(config.mode);
  const bool may_be = (mode.sums_among_workers && mode.replicates_state) || mode.has_servers_alone();
  return may_be && config.pipeline > 1;
}
// Returns into how many stages the model is cut; 1: it is not.
inline int stages_of(const RunSettings& config) { return is_pipelined(config) ? config.pipeline : 1; }
// Returns in how many places of the chain a stage has layers.
inline bool interleaves_stages(const RunSettings& config) {
  return is_pipelined(config) && config.pipeline_schedule == worker::PipelineSchedule::kInterleaved;
}
// Returns whether stages update by each batch's gradient as it comes, some steps after its forward pass.
inline bool stashes_weights(const RunSettings& config) {
  return is_pipelined(config) && worker::stashes_weights(config.pipeline_schedule);
}
inline int chunks_of_stage(const RunSettings& config) {
  return interleaves_stages(config) ? config.pipeline_chunks : 1;
}
// Returns whether workers have a part of each of the model's layers, and several of them train a batch together
// (tensor).
inline bool splits_layers(const RunSettings& config) {
  return sums_among_workers(config) && replicates_state(config) && config.tensor > 1;
}
// Returns whether a worker trains a part of the model, in either way.
inline bool divides_model(const RunSettings& config) { return is_pipelined(config) || splits_layers(config); }
// Returns into how many parts a batch is cut whose gradients are added up; those of a pipeline pass through its stages
// beside each other. 1: it is not cut.
inline int microbatches_of(const RunSettings& config) {
  return stashes_weights(config)  ? config.microbatches.value_or(1)
         : is_pipelined(config)   ? config.microbatches.value_or(8)
         : shards_weights(config) ? config.microbatches.value_or(1)
                                  : 1;
}
// Returns whether workers gather weights from those that own them, one by one.
inline bool gathers_on_demand(const RunSettings& config) {
  return shards_weights(config) && config.gather == WeightGather::kOnDemand;
}
// Returns whether no worker has all weights but where they are gathered, after the same step for all.
inline bool gathers_weights(const RunSettings& config) { return shards_weights(config) || divides_model(config); }
// Returns whether servers keep all weights; or row-sparse tables alone, while workers sum the rest among themselves.
inline bool has_servers_alone(const RunSettings& config) { return traits_of(config.mode).has_servers_alone(); }
inline bool is_hybrid(const RunSettings& config) { return traits_of(config.mode).is_hybrid(); }
// Returns whether some of its tables may be summed among the workers.
inline bool chooses_exchanges(const RunSettings& config) {
  return is_hybrid(config) && config.exchange == TensorExchange::kAuto;
}

// Returns how many servers keep the weights, each of which has --replicas standbys besides; 0 if the mode has none.
inline int servers_of(const RunSettings& config) { return has_servers(config) ? config.servers : 0; }
// Returns whether they are in the processes of workers; and how many are processes of their own.
inline bool is_colocated(const RunSettings& config) { return has_servers(config) && config.colocated; }
inline int separate_servers_of(const RunSettings& config) {
  return is_colocated(config) ? config.spare_servers : servers_of(config);
}
// Returns whether there are both, which have unequal parts of the weights.
inline bool has_spare_servers(const RunSettings& config) { return is_colocated(config) && config.spare_servers > 0; }
// Returns the value of --servers: "2", "colocated", "colocated+1".
std::string servers_text(const RunSettings& config);

}  // namespace syncopate::experiments
