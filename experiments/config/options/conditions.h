// Conditions: under which runs an option has an effect. Each has its rule and its words in one place; --help ("Only
// with ..."), the refusal of an option without an effect and the record of a run all take them from here.
#pragma once

#include "common/text/list_text.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/resolved_run.h"
#include "experiments/config/rules/survival_rules.h"
#include "experiments/config/rules/table_rules.h"
#include "worker/data/dataset_names.h"

namespace syncopate::experiments {

namespace conditions {

using Run = ResolvedRun;
using Kind = ps::ConsistencyTraits;

// Returns "--consistency=" and the kinds of which `test` is true: "--consistency=bounded or async".
inline std::string consistency_among(ps::ConsistencyTest test) {
  return "--consistency=" + list_text(ps::consistency_names(test), "or");
}

// Returns the same of the optimizers.
inline std::string optimizers(const std::function<bool(const OptimizerTraits&)>& test) {
  return "--optimizer=" + list_text(optimizer_names(test), "or");
}

// Returns "--dataset=" and the names of the sets of which `test` is true, and "your own" if that is meant, too.
inline std::string datasets(const std::function<bool(const worker::DatasetTraits&)>& test, bool with_own = false) {
  std::vector<std::string> names = worker::dataset_names(test);
  if (with_own) names.emplace_back("your own");
  return "--dataset=" + list_text(names, "or");
}

// The job
inline const Condition kHasServers{modes_with(&ModeTraits::has_servers), [](const Run& r) { return has_servers(r); }};
inline const Condition kPs{modes_with(&ModeTraits::has_servers_alone),
                           [](const Run& r) { return has_servers_alone(r); }};
inline const std::string kSummingModes = modes_with(&ModeTraits::sums_among_workers);
inline const std::string kReplicatingModes =
    modes_with([](const ModeTraits& mode) { return mode.sums_among_workers && mode.replicates_state; });
inline const Condition kDistributed{modes_with(&ModeTraits::is_distributed),
                                    [](const Run& r) { return is_distributed(r); }};
inline const Condition kOwnTransport{kHasServers.words + ", or a --collective of our own",
                                     [](const Run& r) { return has_servers(r) || has_own_collective(r); }};
inline const Condition kConnections{"--transport=ipc or --transport=tcp", [](const Run& r) {
                                      const bool has_connections =
                                          r.transport == TransportKind::kIpc || r.transport == TransportKind::kTcp;
                                      return kOwnTransport.holds(r) && has_connections;
                                    }};
inline const Condition kOnCpu{"--device=cpu", [](const Run& r) { return r.device == DeviceKind::kCpu; }};
inline const Condition kOnGpu{"--device=cuda", [](const Run& r) { return r.device == DeviceKind::kCuda; }};
inline const Condition kStepsOnGpu{"--device=cuda under local or --collective=nccl", may_capture_steps};
inline const Condition kOtherHosts{"--hosts that names another host",
                                   [](const Run& r) { return spans_hosts(r) && r.cluster == ClusterKind::kReal; }};

inline const Condition kStartsProcesses{"--cluster=real or namespaces, which have processes",
                                        [](const Run& r) { return r.cluster != ClusterKind::kSimulated; }};
inline const Condition kByMpirun{"--launcher=mpirun", [](const Run& r) { return r.launcher == LauncherKind::kMpirun; }};
inline const Condition kByNccl{kReplicatingModes + " and --collective=nccl",
                               [](const Run& r) { return sums_among_replicas(r) && is_nccl(r.collective); }};

inline const Condition kOwnFabric{"--cluster=simulated or namespaces",
                                  [](const Run& r) { return r.cluster != ClusterKind::kReal; }};
inline const Condition kSimulated{"--cluster=simulated",
                                  [](const Run& r) { return r.cluster == ClusterKind::kSimulated; }};

inline const Condition kRealHosts{"--cluster=real, whose time is not virtual",
                                  [](const Run& r) { return r.cluster == ClusterKind::kReal; }};

inline const Condition kSimulatedHosts{"--cluster=simulated, and --hosts or --servers=colocated", [](const Run& r) {
                                         return r.cluster == ClusterKind::kSimulated && is_distributed(r) &&
                                                (!r.hosts.empty() || is_colocated(r));
                                       }};
inline const Condition kOwnModel{"a --model of Syncopate that learns, not profile:NAME and no --command",
                                 [](const Run& r) { return has_evaluator(r); }};
inline const Condition kLearns{"a --model that learns, not profile:NAME", [](const Run& r) { return !is_profile(r); }};

// Compression
inline const Condition kSendsGradients{
    kReplicatingModes +
        ", without --gossip and with another collective than nccl, which is never that of --sync-every, or with " +
        kPs.words + " and a consistency other than " +
        list_text(ps::consistency_names([](const Kind& kind) { return kind.pushes_weights; }), "and"),
    may_compress};
inline const Condition kInt8{"--compress=int8", [](const Run& r) { return codec_of(r).kind == CodecKind::kInt8; }};
inline const Condition kTopK{"--compress=topk:R", [](const Run& r) { return codec_of(r).kind == CodecKind::kTopK; }};
inline const Condition kTopKOfEither{"--compress=topk:R or topk2bit:R", [](const Run& r) {
                                       const CodecKind kind = codec_of(r).kind;
                                       return kind == CodecKind::kTopK || kind == CodecKind::kTopK2Bit;
                                     }};
inline const Condition kTopKOfMomentum{"--compress=topk:R and " + optimizers(has_momentum), may_correct_momentum};
inline const Condition kCompressedPushes{kPs.words + " and --compress",
                                         [](const Run& r) { return compression_of(r).of_pushes(); }};

// Parameter servers
inline const Condition kSharedWork{"--shard=random, --shuffle=global or off, and " +
                                       consistency_among([](const Kind& kind) { return kind.shares_work(); }) +
                                       " without --pipeline, or --gossip=async",
                                   [](const Run& r) { return may_share_work(r); }};
inline const Condition kBackupWorkers{
    consistency_among([](const Kind& kind) { return kind.backup_workers; }),
    [](const Run& r) { return has_servers_alone(r) && r.consistency.traits().backup_workers; }};
inline const Condition kQuorum{consistency_among([](const Kind& kind) { return kind.quorum; }),
                               [](const Run& r) { return has_servers_alone(r) && r.consistency.traits().quorum; }};
inline const Condition kAggregates{
    consistency_among([](const Kind& kind) { return kind.sums_in_step(); }),
    [](const Run& r) { return has_servers_alone(r) && r.consistency.traits().sums_in_step(); }};
inline const Condition kElastic{consistency_among([](const Kind& kind) { return kind.is_elastic(); }),
                                [](const Run& r) { return has_servers(r) && r.consistency.is_elastic(); }};
inline const Condition kStale{consistency_among([](const Kind& kind) { return kind.applies_stale_gradients(); }),
                              [](const Run& r) { return has_servers(r) && r.consistency.applies_stale_gradients(); }};
inline const Condition kSeveralShards{
    kPs.words + " and several shards (--servers, --shards-per-server)",
    [](const Run& r) { return has_servers_alone(r) && r.servers * r.shards_per_server > 1; }};
inline const Condition kRunsAhead{
    consistency_among([](const Kind& kind) { return kind.pipeline; }) + ", and without --delay-compensation",
    [](const Run& r) { return may_run_ahead(r); }};
inline const Condition kOverlapsForward{
    "--device=cpu, --pipeline-depth=0, and " + consistency_among([](const Kind& kind) { return !kind.pushes_weights; }),
    may_overlap_forward};
inline const Condition kOrdersPushes{
    "--overlap-forward and " + consistency_among([](const Kind& kind) { return kind.pipeline; }), may_order_pushes};

// Allreduce
inline const Condition kSumsAmongWorkers{kSummingModes, [](const Run& r) { return sums_among_workers(r); }};
inline const Condition kReplicates{kReplicatingModes, [](const Run& r) { return sums_among_replicas(r); }};
inline const Condition kGoesOnWithout{
    kReplicatingModes + ", or a program of your own (--command) under " + kPs.words,
    [](const Run& r) { return sums_among_replicas(r) || (has_servers(r) && runs_command(r)); }};
inline const Condition kMeetsAll{kReplicatingModes + ", with --sync-every and without --gossip",
                                 [](const Run& r) { return meets_all(r); }};
inline const Condition kOuterMomentum{"--sync-every and an --outer-momentum above 0",
                                      [](const Run& r) { return kMeetsAll.holds(r) && r.outer_momentum > 0; }};
inline const Condition kSumsGradients{kReplicatingModes + ", and without --sync-every and --gossip",
                                      [](const Run& r) { return sums_gradients(r); }};
inline const Condition kMayBePipelined{kSumsGradients.words + ", or " + kPs.words,
                                       [](const Run& r) { return kSumsGradients.holds(r) || kPs.holds(r); }};
inline const Condition kShardsState{modes_with(&ModeTraits::shards_state),
                                    [](const Run& r) { return shards_state(r); }};
inline const Condition kShardsWeights{kShardsState.words + " with --stage=3",
                                      [](const Run& r) { return shards_weights(r); }};
inline const Condition kPipelined{"a --pipeline of 2 or more", [](const Run& r) { return is_pipelined(r); }};
inline const Condition kInterleaves{kPipelined.words + " with --pipeline-schedule=interleaved",
                                    [](const Run& r) { return interleaves_stages(r); }};
inline const Condition kCutsBatches{kPipelined.words + ", or " + kShardsWeights.words,
                                    [](const Run& r) { return is_pipelined(r) || shards_weights(r); }};
inline const Condition kSendsBuckets{kSummingModes + ", and without --sync-every and --gossip",
                                     [](const Run& r) { return sums_among_workers(r) && !averages_weights(r); }};
inline const Condition kHybrid{modes_with(&ModeTraits::is_hybrid), [](const Run& r) { return is_hybrid(r); }};
inline const Condition kSumsRows{
    kSumsGradients.words + ", and --model=ncf or wide-deep with --embeddings=sparse, or with " + kHybrid.words +
        " and --exchange=auto",
    [](const Run& r) { return (kSumsGradients.holds(r) || chooses_exchanges(r)) && has_tables(r); }};
// The direct collective in shared memory has no segments.
inline const Condition kSegments{
    kSummingModes + " and a schedule that sends messages, which direct in shared memory does not", [](const Run& r) {
      const bool in_memory = r.collective == CollectiveKind::kDirect && r.transport == TransportKind::kShm;
      return has_own_collective(r) && !in_memory;
    }};
inline const Condition kChoosesBySize{
    modes_with([](const ModeTraits& mode) { return mode.sums_among_workers && !mode.shards_state(); }) +
        " and --collective=auto over another --transport than shm",
    [](const Run& r) { return sums_among_workers(r) && r.collective == CollectiveKind::kBySize; }};
inline const Condition kStalls{
    kSummingModes +
        ", without --gossip, --pipeline, --tensor and --gather=on-demand and with another collective than nccl",
    may_report_stalls};

// Model and data
using Traits = worker::DatasetTraits;
using worker::SampleKind;
inline const Condition kGeneratedData{datasets([](const Traits& set) { return set.is_generated; }),
                                      [](const Run& r) { return generates_data(r); }};
inline const Condition kTexts{datasets([](const Traits& set) { return set.kind == SampleKind::kText; }),
                              [](const Run& r) { return learns_text(r); }};
inline const Condition kGrammar{"--dataset=grammar", [](const Run& r) { return learns_grammar(r); }};
inline const Condition kPatterns{"--dataset=patterns", [](const Run& r) { return learns_patterns(r); }};
inline const std::string kImageSets = datasets(worker::has_images, true);
inline const Condition kLabelledParts{kDistributed.words + ", " + kImageSets + ", and " + kLearns.words,
                                      [](const Run& r) { return is_distributed(r) && learns_images(r); }};
inline const Condition kImages{kImageSets + ", and " + kLearns.words, [](const Run& r) { return learns_images(r); }};
inline const Condition kInk{
    datasets([](const Traits& set) { return set.kind == SampleKind::kInk; }) + ", and " + kLearns.words,
    [](const Run& r) { return learns_ink(r); }};
inline const Condition kHoldsOut{
    datasets([](const Traits& set) { return set.kind != SampleKind::kTable; }, true) + ", and " + kLearns.words,
    [](const Run& r) { return may_hold_out(r); }};
inline const Condition kCrops{"--dataset=cifar10", [](const Run& r) { return has_crops(r); }};
inline const Condition kSizedTables{datasets([](const Traits& set) { return set.sizes_tables; }),
                                    [](const Run& r) { return sizes_tables(r); }};
inline const Condition kRecommender{"--model=ncf or wide-deep", [](const Run& r) { return is_recommender(r); }};
inline const Condition kOwnData{"--dataset=PATH, your own data", [](const Run& r) { return has_own_data(r); }};
inline const Condition kSizedImages{"--dataset=patterns, or PATH, your own data",
                                    [](const Run& r) { return learns_patterns(r) || has_own_data(r); }};
inline const Condition kDrawnTest{
    "--dataset=PATH and without --test-data, where the files have no test part of their own",
    [](const Run& r) { return has_own_data(r) && !r.test_data; }};
inline const Condition kDrawnData{datasets([](const Traits& set) { return set.is_drawn; }, true),
                                  [](const Run& r) { return draws_data(r); }};

// Training
// What a number of update rules needs to mean something.
template <const RuleNumber& number>
Condition of_rules() {
  return {optimizers([](const OptimizerTraits& traits) { return has(traits, number); }),
          [](const Run& r) { return has(traits_of(r.optimizer), number); }};
}
inline const Condition kMomentum = of_rules<rule_number::kMomentum>();
inline const Condition kStaleMomentum{kStale.words + " and " + optimizers(has_momentum), [](const Run& r) {
                                        return kStale.holds(r) && has_momentum(traits_of(r.optimizer));
                                      }};
inline const Condition kMoments = of_rules<rule_number::kBeta1>();
inline const Condition kVariance{optimizers(has_moments),
                                 [](const Run& r) { return has_moments(traits_of(r.optimizer)); }};
inline const Condition kTrust = of_rules<rule_number::kTrustCoefficient>();
inline const Condition kCutChunks{kPs.words + " and any --optimizer but lars and lamb, whose chunks are whole tensors",
                                  [](const Run& r) { return kPs.holds(r) && !goes_by_layer(traits_of(r.optimizer)); }};
inline const Condition kRho = of_rules<rule_number::kRho>();
inline const Condition kAdagrad = of_rules<rule_number::kInitialAccumulator>();
inline const Condition kFtrl = of_rules<rule_number::kL1>();
inline const Condition kEpsilon = of_rules<rule_number::kEpsilon>();
inline const Condition kWeightDecay{"any --optimizer but ftrl, which has --l2",
                                    of_rules<rule_number::kWeightDecay>().holds};
inline const Condition kDecays{"a --weight-decay above 0",
                               [](const Run& r) { return kWeightDecay.holds(r) && r.weight_decay > 0; }};
// If the global batch size was given, recording that one reproduces the run.
inline const Condition kBatchOfAWorker{"", [](const Run& r) { return !r.global_batch_size; }};
inline const Condition kWholeEpochs{"", [](const Run& r) { return !r.steps; }};
inline const Condition kTarget{"--target-accuracy", [](const Run& r) { return r.target_accuracy > 0; }};

// Checkpoints and survival
inline const Condition kWritesCheckpoints{"--checkpoint-every",
                                          [](const Run& r) { return r.checkpoint_every.has_value(); }};
inline const Condition kUsesCheckpoints{
    "--checkpoint-every or --resume", [](const Run& r) { return kWritesCheckpoints.holds(r) || r.resume.has_value(); }};
inline const Condition kStandbys{kPs.words + " and --launcher=local, without --servers=colocated", may_have_replicas};
inline const Condition kRespawns{kStandbys.words + ", or --elastic", may_respawn};

}  // namespace conditions
}  // namespace syncopate::experiments
