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
#include "common/os/process_handle.h"
#include "common/status.h"

namespace syncopate::library {

// A process that others rely on.
struct WatchedProcess {
  pid_t pid = 0;
  int rank = -1;     // when the job began; -1 for a server
  std::string name;  // "rank 1", "server 0"
  std::string host = {};
  bool is_here = true;  // on this host
  int index = -1;       // of a rank: its number among those that the group has
};

// The process that another waited for in vain.
struct Loss {
  WatchedProcess process;
  bool has_ended = true;  // false: it is alive, as far as is known, and did not come in time
};

// Which losses somebody wants to know of. A job that goes on without a rank cannot go on without a server.
enum class LossesOf { kAll, kServers };

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

  // From now on `on_loss` is called, on the thread that notices, whenever such a process is lost; at once, on the
  // caller's, if one is lost already. It must not call this object. Returns a number for unsubscribe().
  std::uint64_t subscribe(std::function<void()> on_loss, LossesOf which = LossesOf::kAll);
  // When it returns, the function is not running and will not be called.
  void unsubscribe(std::uint64_t number);

  // Returns the first loss, or the first of a server, if there is one. It waits at most `patience` for one: a wire may
  // tell of it a moment before the kernel has ended the process. Any thread.
  std::optional<Loss> lost(Duration patience) const;
  // Returns all so far, in the order in which they were noticed. Any thread.
  std::vector<Loss> losses() const;

  // From now on, each loss of a rank is told to `file`, the input of a server, by a line "lost INDEX". The file must
  // stay open as long as this object lives.
  void tell(int file);

  // From now on, processes may end: nobody is told.
  void forgive();

 private:
  struct Subscriber {
    std::function<void()> on_loss;
    LossesOf which = LossesOf::kAll;

    bool wants(const Loss& loss) const { return which == LossesOf::kAll || is_server(loss); }
  };
  struct Entry {
    WatchedProcess process;
    ProcessHandle handle;
  };

  explicit PeerWatch(FileDescriptor wake) : wake_(std::move(wake)), thread_([this] { loop(); }) {}

  static bool is_server(const Loss& loss) { return loss.process.rank < 0; }

  void loop();
  void note(const Loss& loss);
  void wake() const;

  const FileDescriptor wake_;  // an eventfd
  mutable std::mutex mutex_;   // guards all that follows
  mutable std::condition_variable changed_;
  std::vector<Entry> entries_;
  std::map<std::uint64_t, Subscriber> subscribers_;
  std::uint64_t next_ = 1;
  std::vector<Loss> losses_;  // of each process once
  std::vector<int> told_;     // servers' inputs
  bool forgives_ = false;
  bool ends_ = false;
  std::thread thread_;  // last: it works on all of the above
};

}  // namespace syncopate::library
