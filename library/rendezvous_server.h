// RendezvousServer: where the members of a job's groups meet, in rank 0's process. Each member connects, writes one
// frame (text_frame.h) with group, rank, size and value, and is answered once all have come:
//
//   "ok", the values by rank        or   "missing", the ranks that have not come     or   "refused", why
//
// A member that gives up closes its side, and is told who is missing. Anybody who reaches the port may connect: frames,
// members and connections are limited, and one that makes no sense is dropped. No secret goes through it. Once the
// ranks have a secret in common, members prove that they know it (value_proof.h), and who does not takes no place.
#pragma once

#include <poll.h>

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/status.h"
#include "common/transport/acceptor.h"
#include "common/transport/run_keys.h"

namespace syncopate::library {

// The longest frame of a member, and of an answer; in bytes.
inline constexpr std::size_t kLongestRequest = std::size_t{64} << 10;
inline constexpr std::size_t kLongestAnswer = std::size_t{64} << 20;
inline constexpr int kMostMembers = 1024;

class RendezvousServer {
 public:
  // Listens at `address`, "HOST:PORT"; port 0 is any that is free. Fails with invalid argument if it is taken.
  static Result<std::unique_ptr<RendezvousServer>> start(const std::string& address);
  ~RendezvousServer();

  // From now on, groups whose names begin with `prefix` have members alone whose values are proven by `keys`, of the
  // name without the prefix; who has taken a place in one without a proof loses it. Any thread.
  void require_proof(const std::string& prefix, const RunKeys& keys);

  // Where it listens, with its port.
  const std::string& address() const { return address_; }

 private:
  struct Connection {
    FileDescriptor socket;
    TimePoint due;      // until it has written its frame, or taken its answer
    std::string bytes;  // what has come
    std::string group;  // once its frame has: where it waits
    int rank = -1;
    std::string answer;  // what is to be sent
    bool is_over = false;
  };
  struct Meeting {
    int size = 0;
    std::map<int, Connection*> members;  // by rank
    std::map<int, std::string> values;
  };

  RendezvousServer(FileDescriptor listener, FileDescriptor wake, std::string address);

  void loop();
  void work(std::span<const pollfd> items, Acceptor& acceptor);
  bool is_believed(const std::string& group, int rank, int size, const std::string& value) const;
  void reject(Connection& connection, const std::string& group);
  static std::string another_user_at(const Connection& connection);
  void receive(Connection& connection);
  void admit(Connection& connection, const std::vector<std::string>& texts);
  void give_up(Connection& connection);
  void answer(Connection& connection, const std::vector<std::string>& texts);
  void send_answer(Connection& connection);

  FileDescriptor listener_;
  FileDescriptor wake_;  // an eventfd
  const std::string address_;
  const SteadyClock clock_;
  std::mutex mutex_;
  std::list<Connection> connections_;        // guarded by mutex_, as are the next
  std::map<std::string, Meeting> meetings_;  // by group
  std::map<std::string, RunKeys> keys_;      // by prefix
  bool has_warned_ = false;
  std::thread thread_;  // last: it works on all of the above
};

}  // namespace syncopate::library
