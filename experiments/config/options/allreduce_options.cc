#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {
namespace {

using option_kinds::choice;
using option_kinds::choice_or_auto;
using option_kinds::flag;
using option_kinds::number;
using option_kinds::on_or_off;
using option_kinds::only;

using C = RunRequest;

OptionSpec bucket_bytes() {
  OptionSpec option =
      number({.group = "Allreduce",
              .name = "bucket-bytes",
              .placeholder = "BYTES",
              .sentence = "Gradients are sent in buckets of about this size; auto searches for it in up to 100 steps.",
              .unit = "bytes",
              .range = "1024 to 1073741824, or auto",
              .is_text = true},
             &C::bucket_bytes, "bucket size", std::int64_t{1024}, std::int64_t{1} << 30);
  option.set = [set = option.set](RunRequest& request, const std::string& value) -> Status {
    if (value != "auto") return set(request, value);
    request.bucket_bytes.reset();
    return {};
  };
  option.get = [get = option.get](const ResolvedRun& config) {
    return config.bucket_bytes ? get(config) : std::string("auto");
  };
  return option;
}

// A switch with an optional value.
OptionSpec gossip() {
  OptionSpec option{.group = "Allreduce",
                    .name = "gossip",
                    .of_mode = true,
                    .sentence =
                        "Workers make updates of their own, and average their weights in pairs, drawn anew "
                        "after every --sync-every steps. Partners wait for each other after the same step "
                        "(D-PSGD); with --gossip=async workers with even numbers ask others whenever they have "
                        "made so many, and nobody waits for a slow one (AD-PSGD).",
                    .range = "nothing, or async"};
  option.set = [](RunRequest& request, const std::string& value) -> Status {
    if (value != "true" && value != "async") {
      return Status::invalid_argument(fmt::format("--gossip={}: must be --gossip alone, or --gossip=async", value));
    }
    request.gossip = value == "async" ? Gossip::kAsync : Gossip::kInStep;
    return {};
  };
  option.get = [](const ResolvedRun& config) {
    return std::string(config.gossip == Gossip::kAsync ? "async" : config.gossip == Gossip::kInStep ? "true" : "");
  };
  return option;
}

OptionSpec microbatches() {
  OptionSpec option =
      number({.group = "Allreduce",
              .name = "microbatches",
              .placeholder = "M",
              .sentence = "Parts into which a batch is cut, whose gradients are added up: a pipeline's, so that stages "
                          "work beside each other (with M of them a stage waits (S-1)/(M+S-1) of the time); or at "
                          "--stage=3 a worker's, each of which gathers the weights anew.",
              .usual = "8 in a pipeline, else and under pipedream 1"},
             &C::microbatches, "microbatches", 1, 1024);
  option.get = [](const ResolvedRun& config) { return fmt::format("{}", microbatches_of(config)); };
  return option;
}

}  // namespace

void add_allreduce_options(std::vector<OptionSpec>& table) {
  const std::string group = "Allreduce";
  table.push_back(only(
      choice_or_auto(
          {.group = group,
           .name = "collective",
           .of_mode = true,
           .placeholder = "KIND",
           .sentence =
               "How gradients are summed: by a schedule of ours, Open MPI (mpi; needs "
               "--launcher=mpirun) or NCCL (needs --device=cuda), which chooses its own algorithm unless nccl:ring or "
               "nccl:tree holds it to one. auto takes NCCL on GPUs, direct in "
               "shared memory, and else by each bucket's size what the speed of the links inside and "
               "between hosts makes fastest. On several hosts hierarchical sums in shared memory inside "
               "each, and auto may take it."},
          &C::collective, &ResolvedRun::collective, "collective",
          {CollectiveKind::kDirect, CollectiveKind::kRing, CollectiveKind::kHalvingDoubling, CollectiveKind::kDoubling,
           CollectiveKind::kTree, CollectiveKind::kBinomialTree, CollectiveKind::kHierarchical, CollectiveKind::kMpi,
           CollectiveKind::kNccl, CollectiveKind::kNcclRing, CollectiveKind::kNcclTree}),
      conditions::kSumsAmongWorkers));
  table.push_back(only(flag({.group = group,
                             .name = "measure-wire",
                             .sentence = "Measures the wire's speed, by which auto chooses, though an earlier run has, "
                                         "as is right when the network has changed."},
                            &C::measure_wire),
                       conditions::kChoosesBySize));
  table.push_back(only(bucket_bytes(), conditions::kSendsBuckets));
  table.push_back(
      only(on_or_off({.group = group,
                      .name = "overlap",
                      .placeholder = "HOW",
                      .sentence = "Whether buckets are sent while backward still runs; off shows what that gains."},
                     &C::overlap, "overlap"),
           conditions::kSendsBuckets));
  table.push_back(only(
      choice({.group = group,
              .name = "exchange",
              .placeholder = "HOW",
              .sentence = "Which tensors of a model with row-sparse tables go to servers, and which are summed among "
                          "the workers: tables and the others (by-kind), or for each what its bytes, the link and who "
                          "shares it make fastest (auto)."},
             &C::exchange, "exchange", {TensorExchange::kByKind, TensorExchange::kAuto}),
      conditions::kHybrid));
  table.push_back(only(
      choice({.group = group,
              .name = "sparse-exchange",
              .placeholder = "HOW",
              .sentence = "How gradients of row-sparse tables go round: the rows that are touched, the whole table "
                          "(dense), or what is found to be faster in the first steps (auto)."},
             &C::sparse_exchange, "exchange",
             {allreduce::SparseExchange::kAuto, allreduce::SparseExchange::kRows, allreduce::SparseExchange::kDense}),
      conditions::kSumsRows));
  table.push_back(
      only(number({.group = group,
                   .name = "sync-every",
                   .of_mode = true,
                   .placeholder = "K",
                   .sentence = "From 2 on workers make updates of their own, and average their weights after every K.",
                   .unit = "steps"},
                  &C::sync_every, "steps between meetings", std::int64_t{1}, kMostSyncEvery),
           conditions::kReplicates));
  table.push_back(
      only(number({.group = group,
                   .name = "outer-momentum",
                   .placeholder = "X",
                   .sentence = "Makes the average after --sync-every steps the gradient of a momentum's update of the "
                               "weights that all had before them, with this decay of the velocity (SlowMo)."},
                  &C::outer_momentum, "outer momentum", 0.0, 0.9999),
           conditions::kMeetsAll));
  table.push_back(only(number({.group = group,
                               .name = "outer-rate",
                               .placeholder = "X",
                               .sentence = "Rate of that update; at 1, without a velocity, it leads to the average."},
                              &C::outer_rate, "outer rate", 1e-6, 100.0),
                       conditions::kOuterMomentum));
  table.push_back(only(flag({.group = group,
                             .name = "outer-nesterov",
                             .sentence = "Gives that update Nesterov's form (DiLoCo, with --outer-rate=0.7)."},
                            &C::outer_nesterov),
                       conditions::kOuterMomentum));
  table.push_back(only(number({.group = group,
                               .name = "sync-fragments",
                               .placeholder = "N",
                               .sentence = "The weights meet in N parts by turns, each once in --sync-every steps, so "
                                           "that fewer bytes are sent at once (Streaming DiLoCo)."},
                              &C::sync_fragments, "fragments", std::int64_t{1}, kMostSyncEvery),
                       conditions::kMeetsAll));
  table.push_back(only(number({.group = group,
                               .name = "sync-overlap",
                               .placeholder = "N",
                               .sentence = "A meeting goes on beside the next N steps of each worker, which adds then "
                                           "what all have come to.",
                               .unit = "steps"},
                              &C::sync_overlap, "steps", std::int64_t{0}, kMostSyncEvery),
                       conditions::kMeetsAll));
  table.push_back(only(gossip(), conditions::kReplicates));
  table.push_back(only(number({.group = group,
                               .name = "stage",
                               .of_mode = true,
                               .placeholder = "N",
                               .sentence = "What a worker has only its share of: what the optimizer remembers (1), "
                                           "gradients, too (2), and weights, too (3), as the stages of ZeRO."},
                              &C::stage, "stage", std::int64_t{1}, std::int64_t{3}),
                       conditions::kShardsState));
  table.push_back(only(
      choice({.group = group,
              .name = "gather",
              .of_mode = true,
              .placeholder = "HOW",
              .sentence = "How workers come by each other's weights, and by the sums of their own part's gradients: "
                          "by a collective of all for each layer of each microbatch; or on-demand from and to the "
                          "worker that owns them, so that all meet once a step (ODC)."},
             &C::gather, "gather", {WeightGather::kCollective, WeightGather::kOnDemand}),
      conditions::kShardsWeights));
  table.push_back(
      only(number({.group = group,
                   .name = "pipeline",
                   .of_mode = true,
                   .placeholder = "S",
                   .sentence = "From 2 on the model's layers are cut into S stages, a worker each: S workers train "
                               "their batches as one, and send each other activations (GPipe). With D x S workers "
                               "there are D such pipelines; the workers of a stage sum its gradients, or push them to "
                               "servers, each of which then has shards of every stage."},
                  &C::pipeline, "stages", 1, 64),
           conditions::kMayBePipelined));
  table.push_back(only(microbatches(), conditions::kCutsBatches));
  table.push_back(
      only(choice({.group = group,
                   .name = "pipeline-schedule",
                   .placeholder = "ORDER",
                   .sentence = "The order of a stage's work: all microbatches forward, then all backward (gpipe); one "
                               "forward and one backward in turn (1f1b), which keeps fewer activations; the same with "
                               "several chunks of layers a stage (interleaved), or with the gradients of weights where "
                               "a stage would wait (zero-bubble), which both make it wait less; or without an end of "
                               "the step (pipedream): each stage updates by each batch's gradient as soon as it has "
                               "come, which is of weights that are up to S-1 updates old."},
                  &C::pipeline_schedule, "schedule",
                  {worker::PipelineSchedule::kGpipe, worker::PipelineSchedule::kOneForwardOneBackward,
                   worker::PipelineSchedule::kInterleaved, worker::PipelineSchedule::kZeroBubble,
                   worker::PipelineSchedule::kPipedream}),
           conditions::kPipelined));
  table.push_back(
      only(number({.group = group,
                   .name = "pipeline-chunks",
                   .placeholder = "V",
                   .sentence = "Chunks of layers that each stage has, in as many places of the chain: it waits 1/V of "
                               "the time for others, and sends V times the messages (Megatron-LM)."},
                  &C::pipeline_chunks, "chunks", 2, 64),
           conditions::kInterleaves));
  table.push_back(
      only(number({.group = group,
                   .name = "tensor",
                   .of_mode = true,
                   .placeholder = "T",
                   .sentence = "From 2 on T workers have a part each of every pair of dense layers and of attention's "
                               "heads: they train their batches as one, and sum activations (Megatron-LM). With D x T "
                               "workers there are D such groups, and the workers of a part sum its gradients."},
                  &C::tensor, "parts", 1, 64),
           conditions::kSumsGradients));
  table.push_back(only(
      number({.group = group,
              .name = "segment-bytes",
              .placeholder = "BYTES",
              .sentence = "A schedule's messages are cut so small that one is summed while the next is on its way.",
              .unit = "bytes"},
             &C::segment_bytes, "segment size", std::int64_t{1024}, std::int64_t{1} << 30),
      conditions::kSegments));
  add_nccl_options(table);
}

}  // namespace syncopate::experiments
