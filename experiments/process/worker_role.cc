#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <optional>

#include "common/pause.h"
#include "experiments/process/data_of.h"
#include "experiments/process/replica_group.h"
#include "experiments/process/roles.h"
#include "experiments/process/snapshot_sender.h"
#include "worker/data/batch_loader.h"
#include "worker/staged_batches.h"
#include "worker/trainer.h"

namespace syncopate::experiments {
namespace {

std::int64_t total_steps_of(const RunConfig& config, std::int64_t steps_per_epoch) {
  return config.steps > 0 ? config.steps : config.epochs * steps_per_epoch;
}

// Where a worker computes: on a GPU, or, without a device, on the CPU.
struct Place {
  std::unique_ptr<Device> device;
  std::unique_ptr<worker::ComputeBackend> backend;
};

Result<Place> place_of(const RoleContext& context) {
  Place place;
  if (context.config.device != DeviceKind::kCuda) {
    place.backend = backend_of(context.config);
    return place;
  }
  if (context.accelerator == nullptr) {
    return Status(Code::kInternal, "a worker on a GPU was started with the program for the CPU");
  }
  Result<std::unique_ptr<Device>> device = context.accelerator->open_device(context.gpu);
  if (!device.ok()) return device.status();
  place.device = std::move(*device);
  Result<std::unique_ptr<worker::ComputeBackend>> backend =
      context.accelerator->make_backend(*place.device, context.config.precision);
  if (!backend.ok()) return backend.status();
  place.backend = std::move(*backend);
  return place;
}

}  // namespace

Status run_worker(const RoleContext& context) {
  const RunConfig& config = context.config;
  const SteadyClock clock;
  const auto deadline = [&] { return clock.now() + from_seconds(config.timeout_seconds); };

  Result<worker::DatasetPair> data = open_data_of(config);
  if (!data.ok()) return data.status();
  const worker::BatchOrder order{.seed = config.seed,
                                 .dataset_size = data->train->size(),
                                 .batch_size = config.batch_size,
                                 .rank = context.rank,
                                 .workers = config.workers};
  if (order.steps_per_epoch() == 0) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} training samples do not fill one batch of {} on each of {} workers",
                              order.dataset_size, order.batch_size, order.workers));
  }
  context.activity.set("opening the device", 0);
  Result<Place> place = place_of(context);
  if (!place.ok()) return place.status();
  worker::ComputeBackend& backend = *place->backend;
  Result<std::unique_ptr<worker::Model>> model =
      worker::make_model(model_spec(config), data->train->form(), config.batch_size, backend);
  if (!model.ok()) return model.status();

  worker::BatchLoader loader(*data->train, order);
  worker::BatchSource* batches = &loader;
  std::unique_ptr<worker::StagedBatches> staged;
  if (place->device) {
    Result<std::unique_ptr<worker::StagedBatches>> on_device =
        worker::StagedBatches::create(loader, *place->device, clock, from_seconds(config.timeout_seconds));
    if (!on_device.ok()) return on_device.status();
    staged = std::move(*on_device);
    batches = staged.get();
  }

  context.activity.set("connecting", 0);
  Result<std::unique_ptr<ReplicaGroup>> replicas = ReplicaGroup::connect(context, place->device.get(), clock);
  if (!replicas.ok()) return replicas.status();
  SnapshotSender sender(**model, *data->test, (*replicas)->strategy(), context.control);
  if (context.rank == 0) SYNCOPATE_RETURN_IF_ERROR(sender.prepare());  // while others still load, too
  Pause pause;
  std::optional<worker::Straggling> straggling;
  if (config.stragglers.slows(context.rank)) {
    // The kernel would let each wait last up to 50 microseconds longer.
    prctl(PR_SET_TIMERSLACK, 1000);
    straggling.emplace(straggling_of(config, context.rank), clock,
                       [&](Duration duration) { return pause.wait(duration); });
  }
  if (config.mode == Mode::kAllreduce) {
    context.control.on_heartbeat([&] { return (*replicas)->collective_state(); });
  }
  context.control.on_stop([&] {
    (*replicas)->interrupt();
    pause.interrupt();
  });

  const worker::TrainerOptions options{.chief = context.rank == 0,
                                       .seed = config.seed,
                                       .total_steps = total_steps_of(config, order.steps_per_epoch()),
                                       .steps_per_epoch = order.steps_per_epoch(),
                                       .schedule = schedule_of(config),
                                       .base_learning_rate = config.learning_rate,
                                       .workers = config.workers};
  bool wants_snapshot = false;
  WeightsSnapshot stamp;
  worker::TrainerHooks hooks;
  hooks.next_epoch = [&](std::int64_t epoch) -> Result<bool> {
    context.activity.set("waiting for the next epoch", stamp.steps_done);
    const Result<ControlClient::EpochDecision> decision = context.control.ask_epoch(epoch, deadline());
    if (!decision.ok()) return decision.status();
    wants_snapshot = decision->snapshot;
    return decision->go_on;
  };
  hooks.local_state = [&](std::int64_t epoch, std::span<const float> state) {
    context.control.send_local_state(epoch, state);
  };
  hooks.snapshot = [&](std::int64_t epoch, std::int64_t steps_done, std::span<const float> weights) {
    stamp = {.epoch = epoch, .steps_done = steps_done, .taken = clock.now(), .final = false, .weights = {}};
    // Those of the last step follow as the final weights.
    const bool wanted = wants_snapshot && steps_done < options.total_steps;
    return wanted ? sender.send(stamp, weights) : Status();
  };
  const auto hand_in = [&](std::span<const float> weights) {
    context.activity.set("handing in", stamp.steps_done);
    stamp.final = true;
    stamp.taken = clock.now();
    const Result<bool> wanted = context.control.ask_finish(deadline());
    return wanted.ok() && *wanted ? sender.send(stamp, weights) : Status();
  };

  const worker::TrainerParts parts{backend,         **model, *batches,         (*replicas)->strategy(),
                                   context.control, clock,   context.activity, straggling ? &*straggling : nullptr};
  spdlog::info("training {} with {} parameters for {} steps of {} samples", (*model)->name(),
               (*model)->layout().parameter_count(), options.total_steps, config.batch_size);
  const auto tell = [&](const char* name, const std::string& value) {
    spdlog::info("{}: {}", name, value);
    if (context.rank == 0) context.control.tell(name, value);
  };
  if (place->device) {
    tell("device", place->device->description());
    tell("libraries", context.accelerator->libraries());
  }
  const Status status = worker::train(options, hooks, parts, hand_in);
  // By now the library has said what it took.
  if (const std::string collective = (*replicas)->description(); !collective.empty()) tell("collective", collective);
  context.control.on_stop(nullptr);
  context.control.on_heartbeat(nullptr);
  context.control.count_dropped((*replicas)->dropped());
  // A device or a library that hangs may keep us in its destructor: the reason is said before.
  if (!status.ok() && status.code() != Code::kCancelled) context.control.failed(status);
  return status;
}

}  // namespace syncopate::experiments
