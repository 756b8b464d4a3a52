#include "library/peer_watch.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "library/process_input.h"

namespace syncopate::library {
Result<std::unique_ptr<PeerWatch>> PeerWatch::start() {
  if (const Result<ProcessHandle> own = ProcessHandle::of(getpid()); !own.ok()) {
    return own.status().in("watching processes");
  }
  FileDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.open()) return Status::resource_exhausted(fmt::format("eventfd: {}", std::strerror(errno)));
  return std::unique_ptr<PeerWatch>(new PeerWatch(std::move(wake)));
}

PeerWatch::~PeerWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake();
  thread_.join();
}

Status PeerWatch::watch(const WatchedProcess& process) {
  Result<ProcessHandle> handle = ProcessHandle::of(process.pid);
  const std::lock_guard lock(mutex_);
  if (!handle.ok() && handle.status().code() != Code::kNotFound) return handle.status().in("watching " + process.name);
  if (handle.ok()) {
    entries_.push_back({process, std::move(*handle)});
    wake();
  } else {
    note({process});
  }
  return Status();
}

void PeerWatch::forget(pid_t pid) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [pid](const Entry& entry) { return entry.process.pid == pid; });
  wake();
}

std::uint64_t PeerWatch::subscribe(std::function<void()> on_loss, LossesOf which) {
  const std::lock_guard lock(mutex_);
  const Subscriber subscriber{std::move(on_loss), which};
  const bool is_due = std::ranges::any_of(losses_, [&](const Loss& loss) { return subscriber.wants(loss); });
  if (is_due && !forgives_) subscriber.on_loss();
  subscribers_.emplace(next_, subscriber);
  return next_++;
}

void PeerWatch::unsubscribe(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  subscribers_.erase(number);
}

std::optional<Loss> PeerWatch::lost(Duration patience) const {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [this] { return !losses_.empty(); })) return std::nullopt;
  const auto server = std::ranges::find_if(losses_, is_server);
  return server != losses_.end() ? *server : losses_.front();
}

std::vector<Loss> PeerWatch::losses() const {
  const std::lock_guard lock(mutex_);
  return losses_;
}

void PeerWatch::tell(int file) {
  const std::lock_guard lock(mutex_);
  told_.push_back(file);
}

void PeerWatch::forgive() {
  const std::lock_guard lock(mutex_);
  forgives_ = true;
}

void PeerWatch::wake() const { eventfd_write(wake_.get(), 1); }

void PeerWatch::report(const Loss& loss) {
  const std::lock_guard lock(mutex_);
  note(loss);
}

// The mutex is held.
void PeerWatch::note(const Loss& loss) {
  const auto is_known = [&](const Loss& known) { return known.process.name == loss.process.name; };
  if (std::ranges::any_of(losses_, is_known)) return;
  losses_.push_back(loss);
  changed_.notify_all();
  if (forgives_) return;
  if (!is_server(loss)) {
    for (const int file : told_) (void)write_to_process(file, fmt::format("lost {}\n", loss.process.index));
  }
  for (const auto& [number, subscriber] : subscribers_) {
    if (subscriber.wants(loss)) subscriber.on_loss();
  }
}

void PeerWatch::loop() {
  std::vector<pollfd> polled;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (ends_) return;
      polled.assign(1, {wake_.get(), POLLIN, 0});
      for (const Entry& entry : entries_) polled.push_back({entry.handle.descriptor(), POLLIN, 0});
    }
    ready_before(kNoDeadline, polled);
    eventfd_t count = 0;
    eventfd_read(wake_.get(), &count);
    // Entries may have changed meanwhile: they are asked again.
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [this](const Entry& entry) {
      const bool has_ended = entry.handle.has_ended();
      if (has_ended) note({entry.process});
      return has_ended;
    });
  }
}

}  // namespace syncopate::library
