// PeerWatch: notices at once when another process of this host ends, whatever its connections do: a child that
// inherited them, such as a worker of a data loader, keeps them open for as long as it lives. Each process is watched
// by a pidfd (pidfd_open(2)), on a thread that sleeps meanwhile.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/status.h"

namespace syncopate::library {

// A process that others rely on.
struct WatchedProcess {
  pid_t pid = 0;
  int rank = -1;     // of a rank; -1 for a server
  std::string name;  // "rank 1", "server 0"
  std::string host;
};

class PeerWatch {
 public:
  // Fails with internal if the kernel has no pidfds (Linux before 5.3).
  static Result<std::unique_ptr<PeerWatch>> start();
  ~PeerWatch();

  // Watches one more process. One that has already ended counts as lost.
  Status watch(const WatchedProcess& process);

  // From now on, this process may end.
  void forget(pid_t pid);

  // From now on `on_loss` is called, on the watching thread, when the first process is lost; at once, on the caller's,
  // if one is lost already. It must not call this object. Returns a number for unsubscribe().
  std::uint64_t subscribe(std::function<void()> on_loss);
  // When it returns, the function is not running and will not be called.
  void unsubscribe(std::uint64_t number);

  // Returns the first process that was lost, for which it waits at most `patience`: a wire may tell of a loss a moment
  // before the kernel has ended the process. Any thread.
  std::optional<WatchedProcess> lost(Duration patience) const;

  // From now on, processes may end: nobody is told.
  void forgive();

 private:
  struct Entry {
    WatchedProcess process;
    FileDescriptor pidfd;
  };

  explicit PeerWatch(FileDescriptor wake) : wake_(std::move(wake)), thread_([this] { loop(); }) {}

  void loop();
  void report(const WatchedProcess& process);
  void wake() const;

  const FileDescriptor wake_;  // an eventfd
  mutable std::mutex mutex_;   // guards all that follows
  mutable std::condition_variable changed_;
  std::vector<Entry> entries_;
  std::map<std::uint64_t, std::function<void()>> subscribers_;
  std::uint64_t next_ = 1;
  std::optional<WatchedProcess> lost_;
  bool forgives_ = false;
  bool ends_ = false;
  std::thread thread_;  // last: it works on all of the above
};

}  // namespace syncopate::library
