// PeerWatch: notices at once when another process of this host ends, whatever its connections do: a child that
// inherited them, such as a worker of a data loader, keeps them open for as long as it lives. Each process is watched
// by a pidfd (pidfd_open(2)), on a thread that sleeps meanwhile. What becomes of processes of other hosts, HostWatch
// tells it.
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
  std::string host = {};
  bool is_here = true;  // on this host
};

// The process that another waited for in vain.
struct Loss {
  WatchedProcess process;
  bool has_ended = true;  // false: it is alive, as far as is known, and did not come in time
};

class PeerWatch {
 public:
  // Fails with internal if the kernel has no pidfds (Linux before 5.3).
  static Result<std::unique_ptr<PeerWatch>> start();
  ~PeerWatch();

  // Watches one more process. One that has already ended counts as lost.
  Status watch(const WatchedProcess& process);

  // From now on, this process of this host may end.
  void forget(pid_t pid);

  // Somebody else has noticed a loss. Any thread.
  void report(const Loss& loss);

  // From now on `on_loss` is called, on the thread that notices, when the first process is lost; at once, on the
  // caller's, if one is lost already. It must not call this object. Returns a number for unsubscribe().
  std::uint64_t subscribe(std::function<void()> on_loss);
  // When it returns, the function is not running and will not be called.
  void unsubscribe(std::uint64_t number);

  // Returns the first loss, for which it waits at most `patience`: a wire may tell of it a moment before the kernel has
  // ended the process. Any thread.
  std::optional<Loss> lost(Duration patience) const;

  // From now on, processes may end: nobody is told.
  void forgive();

 private:
  struct Entry {
    WatchedProcess process;
    FileDescriptor pidfd;
  };

  explicit PeerWatch(FileDescriptor wake) : wake_(std::move(wake)), thread_([this] { loop(); }) {}

  void loop();
  void note(const Loss& loss);
  void wake() const;

  const FileDescriptor wake_;  // an eventfd
  mutable std::mutex mutex_;   // guards all that follows
  mutable std::condition_variable changed_;
  std::vector<Entry> entries_;
  std::map<std::uint64_t, std::function<void()>> subscribers_;
  std::uint64_t next_ = 1;
  std::optional<Loss> lost_;
  bool forgives_ = false;
  bool ends_ = false;
  std::thread thread_;  // last: it works on all of the above
};

}  // namespace syncopate::library
