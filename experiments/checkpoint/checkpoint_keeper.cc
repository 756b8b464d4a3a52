#include "experiments/checkpoint/checkpoint_keeper.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <utility>

#include "common/os/whole_file.h"

namespace syncopate::experiments {
namespace {

// Returns the file that names the run that owns the folder.
std::string mark_of(const std::string& folder) { return folder + "/.run"; }

}  // namespace

Result<std::unique_ptr<CheckpointKeeper>> CheckpointKeeper::create(CheckpointKeeperOptions options, Callbacks callbacks,
                                                                   Threads& threads) {
  SYNCOPATE_RETURN_IF_ERROR(make_folder(options.folder));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(mark_of(options.folder), options.run_id));
  return std::unique_ptr<CheckpointKeeper>(new CheckpointKeeper(std::move(options), std::move(callbacks), threads));
}

CheckpointKeeper::CheckpointKeeper(CheckpointKeeperOptions options, Callbacks callbacks, Threads& threads)
    : options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      policy_(options_.interval, options_.together, options_.first_step),
      store_(options_.folder),
      monitor_(threads.make_monitor()),
      thread_(threads.start("checkpoint keeper", [this] { run(); })) {}

CheckpointKeeper::~CheckpointKeeper() {
  {
    const std::lock_guard lock(*monitor_);
    stops_ = true;
    monitor_->notify_all();
  }
  thread_.reset();
}

void CheckpointKeeper::act(TimePoint now) {
  failure_.rethrow();
  hear_of_completed();
  policy_.on_tick(now);
  for (CheckpointAction& action : policy_.take_actions()) carry_out(std::move(action));
}

void CheckpointKeeper::carry_out(CheckpointAction action) {
  switch (action.kind) {
    case CheckpointAction::Kind::kOrder:
      return callbacks_.order(action.membership_epoch, action.step);
    case CheckpointAction::Kind::kReport:
      return callbacks_.report(action.text);
    case CheckpointAction::Kind::kGiveUp:
      return post([this, step = action.step, membership_epoch = action.membership_epoch] {
        store_.give_up(step, membership_epoch);
      });
    case CheckpointAction::Kind::kComplete:
      return post([this, done = std::move(action)] {
        Manifest manifest{.run = options_.run_id, .step = done.step, .facts = options_.facts, .parts = done.parts};
        if (options_.seconds_before) manifest.seconds = *options_.seconds_before + seconds(done.trained);
        const Status status = store_.complete(manifest, done.membership_epoch, options_.key ? &*options_.key : nullptr);
        const std::lock_guard lock(*monitor_);
        done_.push_back({done.step, done.membership_epoch, status});
      });
  }
}

void CheckpointKeeper::hear_of_completed() {
  std::vector<Done> done;
  {
    const std::lock_guard lock(*monitor_);
    done.swap(done_);
  }
  for (const Done& one : done) {
    policy_.on_complete(one.step, one.status);
    if (!one.status.ok()) continue;
    if (callbacks_.completed) callbacks_.completed(store_.path_of(one.step));
    // Not earlier: until now other processes may have been told to go back to the previous one.
    post([this, one] { store_.tidy(one.step, one.membership_epoch, options_.keep); });
  }
}

CheckpointFigures CheckpointKeeper::finish(TimePoint now) {
  act(now);
  wait_until_idle();
  act(now);
  wait_until_idle();
  post([this] { store_.remove_attempts(); });
  wait_until_idle();
  return policy_.figures();
}

void CheckpointKeeper::post(std::function<void()> task) {
  const std::lock_guard lock(*monitor_);
  tasks_.push_back(std::move(task));
  monitor_->notify_all();
}

void CheckpointKeeper::wait_until_idle() {
  const std::lock_guard lock(*monitor_);
  while (!tasks_.empty() || busy_) monitor_->wait();
}

void CheckpointKeeper::run() {
  std::unique_lock lock(*monitor_);
  while (true) {
    while (tasks_.empty() && !stops_) monitor_->wait();
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    failure_.carry(task);
    lock.lock();
    busy_ = false;
    monitor_->notify_all();
  }
}

Status check_shared(const std::string& folder, const std::string& run_id) {
  std::string owner;
  if (std::getline(std::ifstream(mark_of(folder)), owner) && owner == run_id) return {};
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  return Status::invalid_argument(
      fmt::format("{}: is not on host {} what it is where run_experiment runs; checkpoints need a folder that all "
                  "hosts share: name one by --output, or leave --checkpoint-every out",
                  folder, host));
}

}  // namespace syncopate::experiments
