#include "experiments/config/options/option_table.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/group_limits.h"
#include "common/transport/make_transport.h"
#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"
#include "prediction/model_profile.h"
#include "worker/model.h"

namespace syncopate::experiments {
namespace {

using option_kinds::choice;
using option_kinds::choice_or_auto;
using option_kinds::flag;
using option_kinds::number;
using option_kinds::only;
using option_kinds::text;
using option_kinds::wrong;

OptionSpec straggler() {
  OptionSpec option{.group = "Job",
                    .name = "straggler",
                    .placeholder = "LIST",
                    .sentence =
                        "Makes workers slow: 3:4x lets worker 3 compute 4 times as long, 0:+20 adds 20 ms a step, "
                        "all:exp:5 a drawn time of 5 ms in the mean, 1:p0.1:+50 50 ms to one step in ten.",
                    .range =
                        "RANK or all, then :FACTORx, :+MS or :exp:MS, or one of these behind :pPROBABILITY; "
                        "several between commas",
                    .usual = "none",
                    .is_text = true};
  option.set = [](RunRequest& request, const std::string& value) -> Status {
    const Result<worker::Stragglers> parsed = worker::Stragglers::parse(value);
    if (!parsed.ok()) return parsed.status().in("--straggler=" + value);
    if (parsed->empty()) return Status::invalid_argument("--straggler=: names nobody; leave it out");
    request.stragglers = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) { return config.stragglers.to_string(); };
  return option;
}

OptionSpec sample_cost() {
  OptionSpec option{.group = "Job",
                    .name = "sample-cost",
                    .placeholder = "LENGTHS",
                    .sentence =
                        "Makes samples cost what texts of unequal lengths do: each takes a multiple of the mean, drawn "
                        "by its number, and a batch the mean of its samples'. On a simulated cluster computing takes "
                        "so many times as long; elsewhere a worker waits for so many times what it has computed.",
                    .range = worker::SampleCosts::forms(),
                    .usual = "none",
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<worker::SampleCosts> parsed = worker::SampleCosts::parse(value);
    if (!parsed.ok()) return option_kinds::wrong(option, value, "costs");
    request.sample_costs = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) { return config.sample_costs.to_string(); };
  return option;
}

using C = RunRequest;

std::vector<Mode> all_modes() {
  std::vector<Mode> modes;
  std::ranges::transform(kModeTraits, std::back_inserter(modes), &ModeTraits::mode);
  return modes;
}

void add_job(std::vector<OptionSpec>& table) {
  const std::string group = "Job";
  table.push_back(choice({.group = group,
                          .name = "mode",
                          .of_mode = true,
                          .placeholder = "MODE",
                          .sentence = "How replicas are kept in agreement."},
                         &C::mode, "mode", all_modes()));
  add_command_option(table);
  table.push_back(number({.group = group,
                          .name = "workers",
                          .placeholder = "N",
                          .sentence = "Replicas that learn, each in a process of its own.",
                          .unit = "processes",
                          .usual = "2; one for each slot of --hosts; under local 1"},
                         &C::workers, &ResolvedRun::workers, "workers", 1, kMostWorkers));
  table.push_back(
      choice({.group = group,
              .name = "launcher",
              .placeholder = "HOW",
              .sentence = "What starts the processes; slurm: srun, on the hosts of the allocation that this runs in."},
             &C::launcher, "launcher", {LauncherKind::kLocal, LauncherKind::kMpirun, LauncherKind::kSlurm}));
  table.push_back(
      only(choice_or_auto({.group = group,
                           .name = "transport",
                           .placeholder = "WIRE",
                           .sentence = "What carries messages; auto takes shm on one host; between several, tcp "
                                       "for ps and sockets for allreduce."},
                          &C::transport, &ResolvedRun::transport, "transport",
                          {TransportKind::kShm, TransportKind::kIpc, TransportKind::kTcp, TransportKind::kSockets}),
           conditions::kOwnTransport));
  table.push_back(
      only(number({.group = group,
                   .name = "connections",
                   .placeholder = "N",
                   .sentence = "To each peer; large messages take them in turn, where one cannot fill a link.",
                   .unit = "connections"},
                  &C::connections, "connections", 1, kMaxConnections),
           conditions::kConnections));
  add_link_options(table);
  table.push_back(choice_or_auto({.group = group,
                                  .name = "device",
                                  .placeholder = "KIND",
                                  .sentence = "Where workers compute; auto takes GPUs where there is one for each."},
                                 &C::device, &ResolvedRun::device, "device", {DeviceKind::kCpu, DeviceKind::kCuda}));
  table.push_back(only(flag({.group = group,
                             .name = "share-gpu",
                             .sentence = "Lets several workers compute on one GPU; results are labelled as shared."},
                            &C::share_gpu),
                       conditions::kOnGpu));
  table.push_back(straggler());
  table.push_back(sample_cost());
  add_fault_options(table);
  add_compression_options(table);
  add_ps_options(table);
  add_allreduce_options(table);
}

void add_model_and_data(std::vector<OptionSpec>& table) {
  const std::string group = "Model and data";
  const std::vector<std::string> model_names = worker::model_names();
  OptionSpec model =
      text({.group = group,
            .name = "model",
            .of_model = true,
            .placeholder = "NAME",
            .sentence = "What learns; mlp:784-1024-10 gives an mlp's widths from pixels to classes, gpt:4-4-128 "
                        "a transformer's layers, heads and width, for texts, ncf:16 and wide-deep:16 the width of a "
                        "recommender's embeddings; profile:vgg16 (or vgg16 alone, as no model is called so), or "
                        "profile:FILE.json, has a model's sizes and times alone, for a simulated cluster.",
            .range = fmt::format("{}, profile:NAME or profile:FILE", fmt::join(model_names, ", "))},
           &C::model, "model");
  model.set = [set = model.set, model_names](RunRequest& request, const std::string& value) {
    const bool is_profile =
        prediction::built_in_profile(value).ok() && std::ranges::find(model_names, value) == model_names.end();
    return set(request, is_profile ? std::string(kProfilePrefix) + value : value);
  };
  table.push_back(std::move(model));
  add_data_options(table);
  table.push_back(only(choice({.group = group,
                               .name = "backend",
                               .of_model = true,
                               .placeholder = "NAME",
                               .sentence = "What computes: oneDNN, or plain loops to check it against."},
                              &C::backend, "backend", {BackendKind::kOneDnn, BackendKind::kReference}),
                       conditions::kOnCpu));
  table.push_back(only(
      choice({.group = group,
              .name = "precision",
              .placeholder = "KIND",
              .sentence =
                  "On a GPU: tf32 rounds the factors of products; under bf16 and fp16 all tensors have 16 bits, and "
                  "updates are made to fp32 weights."},
             &C::precision, "precision",
             {worker::Precision::kFp32, worker::Precision::kTf32, worker::Precision::kBf16, worker::Precision::kFp16}),
      conditions::kOnGpu));
  table.push_back(only(on_or_off({.group = group,
                                  .name = "cuda-graphs",
                                  .placeholder = "HOW",
                                  .sentence = "Whether a step is captured once and then given to the GPU as one piece; "
                                              "off shows what that gains."},
                                 &C::cuda_graphs, "cuda-graphs"),
                       conditions::kStepsOnGpu));
  add_recommender_options(table);
}

// Returns the usual rates, as in "sgd 0.1, adam and adamw 0.001".
std::string usual_rates() {
  std::string text;
  const OptimizerTraits* last = nullptr;
  for (const OptimizerTraits& traits : kOptimizers) {
    const bool is_alike = last != nullptr && last->usual_rate == traits.usual_rate;
    if (last != nullptr && !is_alike) text += fmt::format(" {:g}, ", last->usual_rate);
    text += std::string(is_alike ? " and " : "") + traits.name;
    last = &traits;
  }
  return text + fmt::format(" {:g}", last->usual_rate);
}

// A zero is taken as if it were not given.
OptionSpec learning_rate() {
  OptionSpec option = number({.group = "Training",
                              .name = "learning-rate",
                              .placeholder = "RATE",
                              .sentence = "Base rate; 0 takes the optimizer's usual one.",
                              .usual = "0: " + usual_rates()},
                             &C::learning_rate, &ResolvedRun::learning_rate, "learning rate", 0.0, 1000.0);
  option.set = [set = option.set](RunRequest& request, const std::string& value) -> Status {
    SYNCOPATE_RETURN_IF_ERROR(set(request, value));
    if (request.learning_rate == 0) request.learning_rate.reset();
    return {};
  };
  return option;
}

OptionSpec learning_rate_schedule() {
  OptionSpec option{
      .group = "Training",
      .name = "lr-schedule",
      .placeholder = "LIST",
      .sentence =
          "How the rate goes over time, as in linear,warmup:5,step:30:0.1; linear multiplies it by the workers' "
          "batches that one update learns from, where these are several.",
      .range = "constant, step:EPOCHS:FACTOR or cosine, then linear and warmup:EPOCHS if wanted",
      .usual = to_string(RunSettings().lr_schedule)};
  option.is_text = true;
  option.set = [](RunRequest& request, const std::string& value) -> Status {
    const Result<LearningRateSchedule> parsed = LearningRateSchedule::parse(value);
    if (!parsed.ok()) return parsed.status().in("--lr-schedule=" + value);
    request.lr_schedule = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& run) { return to_string(run.lr_schedule); };
  return option;
}

void add_update_rule(std::vector<OptionSpec>& table) {
  const std::string group = "Training";
  std::vector<OptimizerChoice> optimizers;
  for (const OptimizerTraits& traits : kOptimizers) optimizers.push_back(traits.choice);
  table.push_back(choice({.group = group,
                          .name = "optimizer",
                          .placeholder = "NAME",
                          .sentence = "The update rule, the same code in a worker and in a server."},
                         &C::optimizer, "optimizer", optimizers));
  table.push_back(learning_rate());
  table.push_back(learning_rate_schedule());
  const auto momentum_only = [&](OptionSpec option) {
    table.push_back(only(std::move(option), conditions::kMomentum));
  };
  const auto adam_only = [&](OptionSpec option) { table.push_back(only(std::move(option), conditions::kMoments)); };
  momentum_only(number({.group = group, .name = "momentum", .placeholder = "X", .sentence = "Decay of the velocity."},
                       &C::momentum, "momentum", 0.0, 0.9999));
  adam_only(number({.group = group, .name = "beta1", .placeholder = "X", .sentence = "Decay of the first moment."},
                   &C::beta1, "beta1", 0.0, 0.9999));
  adam_only(number({.group = group, .name = "beta2", .placeholder = "X", .sentence = "Decay of the second moment."},
                   &C::beta2, "beta2", 0.0, 0.999999));
  table.push_back(only(number({.group = group,
                               .name = "adam-freeze-variance",
                               .placeholder = "N",
                               .sentence = "Keeps the second moment as it is after so many updates, so that later "
                                           "gradients enter the first moment alone. With --compress this is 1-bit "
                                           "Adam: nothing is compressed before, and the first moment is afterwards.",
                               .unit = "updates",
                               .usual = "never"},
                              &C::adam_freeze_variance, "updates", std::int64_t{1}, std::int64_t{1000000000}),
                       conditions::kVariance));
  table.push_back(only(
      number(
          {.group = group, .name = "rho", .placeholder = "X", .sentence = "What means of squares keep in each update."},
          &C::rho, "rho", 0.0, 0.999999),
      conditions::kRho));
  table.push_back(only(number({.group = group,
                               .name = "trust-coefficient",
                               .placeholder = "X",
                               .sentence = "Multiplies the ratio of a tensor's norm to that of its gradient."},
                              &C::trust_coefficient, "trust coefficient", 1e-9, 1e3),
                       conditions::kTrust));
  table.push_back(
      only(number({.group = group, .name = "epsilon", .placeholder = "X", .sentence = "Keeps the division finite."},
                  &C::epsilon, "epsilon", 1e-16, 1.0),
           conditions::kEpsilon));
  table.push_back(
      only(number({.group = group,
                   .name = "weight-decay",
                   .placeholder = "X",
                   .sentence = "Pull of weights towards zero, but of biases and norms; added to the gradient, in "
                               "adamw decoupled from it: rate x X of each weight an update, as in PyTorch."},
                  &C::weight_decay, "weight decay", 0.0, 1.0),
           conditions::kWeightDecay));
  table.push_back(only(flag({.group = group,
                             .name = "decay-all",
                             .sentence = "Lets weight decay pull biases, and scales and shifts of norms, too."},
                            &C::decay_all),
                       conditions::kDecays));
  table.push_back(only(number({.group = group,
                               .name = "initial-accumulator",
                               .placeholder = "X",
                               .sentence = "What each weight's sum of squared gradients begins with."},
                              &C::initial_accumulator, "initial accumulator", 0.0, 1e6),
                       conditions::kAdagrad));
  const auto ftrl_only = [&](OptionSpec option) { table.push_back(only(std::move(option), conditions::kFtrl)); };
  ftrl_only(number({.group = group,
                    .name = "l1",
                    .placeholder = "X",
                    .sentence = "Weights whose gradients' weighted sum stays below it are exactly zero."},
                   &C::l1, "l1", 0.0, 1e6));
  ftrl_only(number({.group = group, .name = "l2", .placeholder = "X", .sentence = "Pull of all weights towards zero."},
                   &C::l2, "l2", 0.0, 1e6));
  ftrl_only(number({.group = group,
                    .name = "ftrl-beta",
                    .placeholder = "X",
                    .sentence = "The first steps' rate is the learning rate over this."},
                   &C::ftrl_beta, "beta", 1e-6, 1e6));
}

void add_amount(std::vector<OptionSpec>& table) {
  const std::string group = "Training";
  OptionSpec batch = number({.group = group,
                             .name = "batch-size",
                             .placeholder = "B",
                             .sentence = "Batch of each worker.",
                             .unit = "samples",
                             .usual = fmt::format("{}", kUsualBatchSize),
                             .excludes = "global-batch-size"},
                            &C::batch_size, &ResolvedRun::batch_size, "batch size", 1, 65536);
  table.push_back(only(std::move(batch), conditions::kBatchOfAWorker));
  table.push_back(number({.group = group,
                          .name = "global-batch-size",
                          .placeholder = "B",
                          .sentence = "Batch of all workers together, instead of --batch-size.",
                          .unit = "samples",
                          .usual = "none",
                          .excludes = "batch-size"},
                         &C::global_batch_size, "global batch size", std::int64_t{1}, std::int64_t{65536}));
  OptionSpec epochs = number({.group = group,
                              .name = "epochs",
                              .placeholder = "N",
                              .sentence = "Length of the training.",
                              .unit = "passes over the training set",
                              .excludes = "steps"},
                             &C::epochs, "epochs", std::int64_t{1}, std::int64_t{100000});
  table.push_back(only(std::move(epochs), conditions::kWholeEpochs));
  table.push_back(number({.group = group,
                          .name = "steps",
                          .placeholder = "N",
                          .sentence = "Length of the training, instead of --epochs.",
                          .unit = "steps of all workers, a batch of each",
                          .usual = "none",
                          .excludes = "epochs"},
                         &C::steps, "steps", std::int64_t{1}, std::int64_t{1000000000}));
  add_evaluation_options(table);
  table.push_back(number(
      {.group = group,
       .name = "seed",
       .placeholder = "N",
       .sentence = "Decides initial weights, order of the data and what stragglers and codecs draw; repeat r (from "
                   "0) of a run has SEED + r."},
      &C::seed, "seed", std::uint64_t{0}, std::uint64_t{INT64_MAX}));
  table.push_back(only(number({.group = group,
                               .name = "data-seed",
                               .of_model = true,
                               .placeholder = "N",
                               .sentence = "Decides the generated data, which items no user rated are shown with "
                                           "ratings, and which of your own samples are the test part; the same in all "
                                           "repeats."},
                              &C::data_seed, "data seed", std::uint64_t{0}, std::uint64_t{INT64_MAX}),
                       conditions::kDrawnData));
}

void add_run(std::vector<OptionSpec>& table) {
  const std::string group = "Run";
  table.push_back(number({.group = group,
                          .name = "repeat",
                          .placeholder = "N",
                          .sentence = "Runs the whole job so often; the report shows median and spread.",
                          .unit = "times"},
                         &C::repeat, "repeats", 1, 100));
  table.push_back(number({.group = group,
                          .name = "warmup-steps",
                          .placeholder = "N",
                          .sentence = "First steps of each worker that no figure counts.",
                          .unit = "steps",
                          .usual = fmt::format("{}, or half of --steps if that is less", kUsualWarmupSteps)},
                         &C::warmup_steps, &ResolvedRun::warmup_steps, "warm-up steps", 0, 1000000));
  table.push_back(
      number({.group = group,
              .name = "timeout",
              .placeholder = "SECONDS",
              .sentence = "Deadline of everything that waits; past it the run ends and says who was missing.",
              .unit = "seconds"},
             &C::timeout_seconds, "timeout", 1.0, 3600.0));
  table.push_back(
      only(number({.group = group,
                   .name = "stall-warning",
                   .placeholder = "SECONDS",
                   .sentence = "Names the ranks that the others wait for in an allreduce, once they have "
                               "waited so long; 0 never does.",
                   .unit = "seconds",
                   .usual = "5, or a quarter of --timeout if that is less"},
                  &C::stall_warning_seconds, &ResolvedRun::stall_warning_seconds, "stall warning", 0.0, 3600.0),
           conditions::kStalls));
  add_trace_options(table);
  add_watch_options(table);
  // Not recorded: a record that named its own directory could not be run again.
  table.push_back(text({.group = group,
                        .name = "output",
                        .placeholder = "DIR",
                        .sentence = "Where results go.",
                        .range = "a directory that is empty or not there yet",
                        .usual = "results/DATE-TIME-MODE",
                        .in_file = false},
                       &C::output, &ResolvedRun::output, "output"));
  table.push_back(flag({.group = group,
                        .name = "dry-run",
                        .sentence = "Shows the processes that would run and what lies on which shard, and runs none.",
                        .in_file = false},
                       &C::dry_run));
}

}  // namespace

std::vector<OptionSpec> option_table() {
  std::vector<OptionSpec> table;
  add_job(table);
  add_simulation_options(table);
  add_host_options(table);
  add_model_and_data(table);
  add_update_rule(table);
  add_amount(table);
  add_checkpoint_options(table);
  add_survival_options(table);
  add_run(table);
  mark_options_with_command(table);
  return table;
}

}  // namespace syncopate::experiments
