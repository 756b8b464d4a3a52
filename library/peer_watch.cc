#include "library/peer_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace syncopate::library {
namespace {

FileDescriptor open_pidfd(pid_t pid) { return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

}  // namespace

Result<std::unique_ptr<PeerWatch>> PeerWatch::start() {
  if (!open_pidfd(getpid()).open()) {
    return Status::internal(fmt::format("processes cannot be watched (pidfd_open: {})", std::strerror(errno)));
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
  FileDescriptor pidfd = open_pidfd(process.pid);
  const std::lock_guard lock(mutex_);
  if (!pidfd.open() && errno != ESRCH) {
    return Status::resource_exhausted(fmt::format("watching {}: {}", process.name, std::strerror(errno)));
  }
  if (pidfd.open()) {
    entries_.push_back({process, std::move(pidfd)});
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

std::uint64_t PeerWatch::subscribe(std::function<void()> on_loss) {
  const std::lock_guard lock(mutex_);
  if (lost_ && !forgives_) on_loss();
  subscribers_.emplace(next_, std::move(on_loss));
  return next_++;
}

void PeerWatch::unsubscribe(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  subscribers_.erase(number);
}

std::optional<Loss> PeerWatch::lost(Duration patience) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return lost_.has_value(); });
  return lost_;
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
  if (lost_) return;
  lost_ = loss;
  changed_.notify_all();
  if (forgives_) return;
  for (const auto& [number, on_loss] : subscribers_) on_loss();
}

void PeerWatch::loop() {
  std::vector<pollfd> polled;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (ends_) return;
      polled.assign(1, {wake_.get(), POLLIN, 0});
      for (const Entry& entry : entries_) polled.push_back({entry.pidfd.get(), POLLIN, 0});
    }
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    eventfd_t count = 0;
    eventfd_read(wake_.get(), &count);
    // Entries may have changed meanwhile: they are asked again.
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [this](const Entry& entry) {
      pollfd item{entry.pidfd.get(), POLLIN, 0};
      const bool has_ended = poll(&item, 1, 0) > 0;
      if (has_ended) note({entry.process});
      return has_ended;
    });
  }
}

}  // namespace syncopate::library
