// ResolvedRun: what will run, with everything settled. resolve() (resolution.h) makes it of a request, once; from then
// on the launcher, the processes and the record take it as it is. Nobody changes it, but for a copy that is another
// run: a repeat with the next seed, a trial at another rate, a folder of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allreduce/strategy/outer_meetings.h"
#include "common/optimizer/optimizer.h"
#include "common/param_layout.h"
#include "common/trace/trace_plan.h"
#include "experiments/config/run_settings.h"
#include "ps/group.h"

namespace syncopate::experiments {

// What a script trains whose ranks are simulated, and by which update.
struct ScriptModel {
  ParamLayout layout;
  OptimizerConfig update;
};

struct ResolvedRun : RunSettings {
  int workers = 1;
  TransportKind transport = TransportKind::kShm;
  DeviceKind device = DeviceKind::kCpu;
  std::string gpu;                         // worker 0's: Placement::gpu; not part of the record
  std::string listen_address;              // where other hosts reach this one; empty without others
  double elastic_alpha = 0;                // used by easgd
  LinkShape inside = usual_link_inside();  // in a simulated cluster, where hosts have several processes
  ComputeModel compute;                    // this and the next: in a simulated cluster
  ProcessingModel processing;
  ps::ShardingPolicy sharding = ps::ShardingPolicy::kBalanced;
  std::int64_t chunk_bytes = 256 * 1024;
  CollectiveKind collective = CollectiveKind::kBySize;
  double learning_rate = 0.001;
  int batch_size = 64;                             // samples per step and worker
  int warmup_steps = 10;                           // of each worker
  double stall_warning_seconds = 5;                // 0: never
  std::string output;                              // the folder of the results
  std::shared_ptr<const ScriptModel> script = {};  // of a simulated run of a script, once that has begun
  std::string compared;  // of a program of one's own: what all rows ask of it (asked_of_program)
};

// Returns whether some processes of the run are on other hosts than the coordinator, which no simulated ones are.
bool spans_hosts(const RunSettings& config);
// Returns whether processes on different hosts exchange gradients and weights: in every run that spans hosts, but one
// of a program of the person's own whose workers are all on one other host.
bool exchanges_between_hosts(const ResolvedRun& config);
// Returns how many hosts a run has whose cluster is simulated or of namespaces: those of --hosts, or one for each
// worker and server.
std::size_t own_hosts_of(const ResolvedRun& config);
// Returns the hosts that workers and servers are placed on. Without --hosts it is the coordinator's, with a slot for
// each worker; where they are namespaces, a host for each worker, and behind these for each server.
std::vector<HostSlots> hosts_of(const ResolvedRun& config);
// Returns what runs on each host of a distributed run where processes share hosts, or a worker and its server do; empty
// where each process has a host of its own.
std::vector<HostProcesses> shared_hosts_of(const ResolvedRun& config);
// Returns what shares each link: that of a host if its processes do, else that of a process. Those with workers come
// first where no hosts are named.
std::vector<HostProcesses> processes_by_link(const ResolvedRun& config);
// Returns which part of the weights each server is to hold, all together 1: equal ones; where there are spare servers,
// those of prediction::byteps_parts, of which the workers of a host have equal shares.
std::vector<double> server_parts_of(const ResolvedRun& config);

// Returns the link that processes emulate in their transport: of the hosts of namespaces, whose rate the kernel limits,
// its delay alone (at rate 0), and none of simulated ones.
std::optional<LinkShape> emulated_link_of(const ResolvedRun& config);

// What the run means for the parts that do the work. Returns whether gradients and weights are copied through host
// memory between a GPU and the network.
bool is_staged(const ResolvedRun& config);
// Returns whether a GPU can be given a whole step, update and all, as one CUDA graph; and whether it is.
bool may_capture_steps(const ResolvedRun& config);
bool captures_steps(const ResolvedRun& config);
// A worker's place where workers train parts of the model: the stage of a pipeline, and of that stage's layers the
// part; and of which of D replicas of the model, each of which trains every D-th batch of its S x T workers' size. The
// T workers of a stage's parts have ranks in a row, then the replicas of a stage, as in Megatron-LM: who sends each
// other most are neighbours. Where the model is not divided every worker is a replica.
struct ModelPlace {
  int stage = 0;
  int part = 0;
  int replica = 0;

  bool operator==(const ModelPlace&) const = default;
};
// Returns how many replicas of the model a run has; and the place of worker `rank`, of which worker_at() is the
// inverse.
int model_replicas(const ResolvedRun& config);
ModelPlace model_place(const ResolvedRun& config, int rank);
int worker_at(const ResolvedRun& config, const ModelPlace& place);
// Returns the samples that a replica trains in a step: the batches of its workers, as one.
int replica_batch(const ResolvedRun& config);
// Returns the samples of a microbatch: of which a worker's model computes the gradient at once.
int microbatch_samples(const ResolvedRun& config);

// Returns whether our own schedules (over a transport) or the direct collective carry the gradients.
bool has_own_collective(const ResolvedRun& config);
// Returns the schedule that sums gradients; none where a library sums them, or where the size decides (auto).
std::optional<allreduce::ScheduleKind> schedule_kind_of(const ResolvedRun& config);
// Returns whether gradients are summed in shared memory inside each host, and over the transport between hosts.
bool sums_on_two_levels(const ResolvedRun& config);
// Returns whether gradients may be summed so: also where the size decides, and several hosts have workers, one of them
// more than one.
bool may_sum_on_two_levels(const ResolvedRun& config);
// Returns the workers of the host that has most of them.
std::int64_t workers_of_largest_host(const ResolvedRun& config);
// Returns whether the workers of a host sum their gradients in shared memory, and one of them pushes the sum.
bool aggregates_on_hosts(const ResolvedRun& config);
// Returns whether either of the two is so.
bool sums_inside_hosts(const ResolvedRun& config);
// Returns "shm", "ipc" or "tcp"; "shm inside a host, tcp between hosts" or "tcp to servers"; "mpi" or "nccl" where
// these carry the gradients; "none" under local.
const char* transport_that_runs(const ResolvedRun& config);
// Returns whether the data set is generated, in the sizes that are asked for, rather than read.
bool generates_data(const RunSettings& config);
// Returns whether a seed decides something of its samples.
bool draws_data(const RunSettings& config);
// Returns whether its training images can be cropped and flipped.
bool has_crops(const RunSettings& config);
// Returns whether the data set is of files of the person's own.
bool has_own_data(const RunSettings& config);
// Returns what is decided about these.
worker::OwnOptions own_options_of(const RunSettings& config);
// Returns whether its samples are images, of which each has a label, or values of the person's own, as those of an
// image.
bool learns_images(const RunSettings& config);
// Returns whether each worker has a part of the training set to itself, by label.
bool shards_by_label(const RunSettings& config);
// Returns whether the data set is one of images of ink on paper, whose pixels can be scaled otherwise.
bool learns_ink(const RunSettings& config);
// Returns the order that has an effect: under local one worker has all samples, and only off differs.
worker::Shuffle shuffle_of(const RunSettings& config);
// Returns whether each worker trains samples of its own, or in an order of its own, so that no other can relieve it.
bool has_samples_of_its_own(const RunSettings& config);
// Returns whether its samples are texts.
bool learns_text(const RunSettings& config);
bool learns_grammar(const RunSettings& config);
bool learns_patterns(const RunSettings& config);
// Returns whether samples of its training set may be held out (worker/data/held_out.h): where the samples of a test set
// are of the same kind.
bool may_hold_out(const RunSettings& config);
// Returns whether the model is a profile (profile_choice.h), of which nothing is learnt: "profile:resnet50".
inline constexpr std::string_view kProfilePrefix = "profile:";
bool is_profile(const RunSettings& config);
// Returns whether every seed gives a simulated run the same times, as far as is known before: those of a profile, of
// which nothing is drawn or measured.
bool times_are_certain(const ResolvedRun& config);
// Returns whether each worker runs a program of the person's own, which decides itself what learns from what, and how
// long.
inline bool runs_command(const RunSettings& config) { return !config.command.empty(); }

// Returns the number of servers and standbys that are processes of their own in the plan: a program of one's own starts
// its servers itself.
inline int server_processes_of(const RunSettings& config) {
  return runs_command(config) ? 0 : separate_servers_of(config) * (1 + config.replicas);
}
// Returns the program and its arguments as one line for a shell: "python train.py --epochs=3".
std::string command_of(const RunSettings& config);
// Returns whether Syncopate has the model, evaluates it, and shows and keeps what it learns.
inline bool has_evaluator(const RunSettings& config) { return !is_profile(config) && !runs_command(config); }
// Returns what learns from what: "mlp on digits"; of a profile its name alone; of a program of one's own its command.
std::string model_on_data(const RunSettings& config);
// Returns the name that worker::open_dataset takes: "digits:60000-10000", "mnist", "text:64", "clicks:100000".
std::string dataset_spec(const RunSettings& config);
// Returns the name that worker::make_model takes: "mlp", "ncf:16:dense".
std::string model_spec(const RunSettings& config);
OptimizerConfig optimizer_of(const ResolvedRun& config);
// Returns the members of a run with parameter servers, as a stage of its pipelines sees them. Spare servers have as
// many shards, each with a connection to every worker, as make them no larger than others': connections share links
// equally.
ps::PsGroup ps_group_of(const ResolvedRun& config, int stage = 0);
// Return over how many shards the weights are divided under ps, those of all stages, and how.
std::size_t shards_of(const ResolvedRun& config);
ps::Sharding sharding_of(const ResolvedRun& config);
// Returns what makes meetings of all more than means; empty if nothing does.
// Returns what meetings of all workers do.
allreduce::OuterOptions outer_options_of(const ResolvedRun& config);
// Returns whether workers sum among themselves, and each makes every update.
bool sums_among_replicas(const RunSettings& config);
// Returns whether such workers make updates of their own, and average weights instead of gradients; or sum gradients.
bool averages_weights(const RunSettings& config);
// Returns whether they go on from the mean of all, and not of pairs.
bool meets_all(const RunSettings& config);
bool sums_gradients(const RunSettings& config);
// Returns whether such workers never agree on common weights before the end.
inline bool has_replicas_of_their_own(const RunSettings& config) {
  return sums_among_workers(config) && config.gossip != Gossip::kOff;
}
// Returns whether such workers do not wait for each other's steps either (AD-PSGD).
inline bool gossips_asynchronously(const RunSettings& config) {
  return sums_among_workers(config) && config.gossip == Gossip::kAsync;
}
// Returns the name of the averaging method in results and summaries: "sync-every:8", "gossip:1", "gossip-async:4".
// Requires averages_weights(config).
std::string averaging_of(const RunSettings& config);
// Return whether gradients are compressed, and whether they can be. They cannot where they are not sent (weights are
// averaged, or workers make steps of their own), and where NCCL sums them in the memory of GPUs.
bool compresses(const RunSettings& config);
bool may_compress(const ResolvedRun& config);
// Returns the codec of gradients with all its settings; none where they are not compressed.
CodecConfig codec_of(const ResolvedRun& config);
// Return whether workers keep the velocity, as Lin et al. 2018 do, so that the update is plain sgd; and whether they
// can.
bool corrects_momentum(const ResolvedRun& config);
bool may_correct_momentum(const ResolvedRun& config);
// Returns whether Adam continues as 1-bit Adam (Tang et al. 2021) once its variance is frozen. Nothing is compressed
// before that; afterwards momentum is.
bool is_one_bit_adam(const ResolvedRun& config);
// Returns what workers and shards compress.
ps::Compression compression_of(const ResolvedRun& config);
// Returns how many steps each worker makes, of which `steps_per_epoch` are a pass over the data.
std::int64_t total_steps_of(const RunSettings& config, std::int64_t steps_per_epoch);
// Returns the longest delay of a straggler in one step: half of the timeout, since the others wait for it meanwhile.
Duration longest_delay(const RunSettings& config);
// Returns whether worker `rank` is slowed, and how. It waits for what samples cost, where their time does not pass in
// the computing itself, as on a simulated cluster.
bool is_slowed(const ResolvedRun& config, int rank);
worker::StragglingOptions straggling_of(const ResolvedRun& config, int rank);
// Returns how long a collective operation may wait for missing ranks before it is reported; zero: it never is.
Duration stall_warning_of(const ResolvedRun& config);
// Returns whether stalls can be reported. They cannot with NCCL, whose operations are queued on the GPU and not waited
// for one by one, or for operations between pairs, or among the workers of a stage, which do not concern all ranks; nor
// where workers gather weights on demand, and are at different layers.
bool may_report_stalls(const ResolvedRun& config);
// Return whether a worker may run ahead of the responses to its pushes, may begin a forward pass before it has all of
// them, and may choose what it pushes first. Where it may not, the option has no effect.
bool may_run_ahead(const RunSettings& config);
bool may_overlap_forward(const ResolvedRun& config);
bool may_order_pushes(const ResolvedRun& config);
// Returns whether workers do not wait for each other in each step.
bool goes_at_own_pace(const RunSettings& config);
// Return whether workers may draw batches from one queue of the whole job, and whether they do. They may where they go
// at their own pace and any worker trains any sample.
bool may_share_work(const RunSettings& config);
bool shares_work(const RunSettings& config);
// Returns how many batches of one worker a step of the whole job takes: one of each worker, or with backup workers as
// many as an update needs.
int batches_a_step(const ResolvedRun& config);
// Returns the consistency, with the number of backup workers.
ps::Consistency consistency_of(const RunSettings& config);
ps::StalenessOptions staleness_of(const ResolvedRun& config);
// Return the steps that a run traces, and how many events each process keeps of them. Requires config.trace.
TraceSteps traced_steps_of(const ResolvedRun& config);
std::size_t trace_capacity_of(const ResolvedRun& config);
// What each process is told of both.
TracePlan trace_plan_of(const ResolvedRun& config);

}  // namespace syncopate::experiments
