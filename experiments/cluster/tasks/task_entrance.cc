#include "experiments/cluster/tasks/task_entrance.h"

#include <sys/socket.h>

#include <list>
#include <utility>

#include "common/os/tcp_socket.h"
#include "common/transport/acceptor.h"
#include "common/transport/local_socket.h"

namespace syncopate::experiments {
namespace {

class LocalEntrance final : public TaskEntrance {
 public:
  explicit LocalEntrance(FileDescriptor listener) : acceptor_(std::move(listener), "the task") {}

  void add_to(std::vector<pollfd>& items) const override { items.push_back({acceptor_.to_poll(), POLLIN, 0}); }

  std::vector<TaskConnection> admit() override {
    std::vector<TaskConnection> admitted;
    while (true) {
      FileDescriptor caller = acceptor_.accept(SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (!caller.open()) return admitted;
      if (is_of_own_user(caller.get())) {
        admitted.emplace_back(make_plain_stream(std::move(caller)));
      } else {
        has_turned_away_ = true;
      }
    }
  }

  bool has_turned_away() const override { return has_turned_away_; }

 private:
  Acceptor acceptor_;
  bool has_turned_away_ = false;
};

class NetworkEntrance final : public TaskEntrance {
 public:
  NetworkEntrance(FileDescriptor listener, SocketHandshake::Member self, Duration silence)
      : acceptor_(std::move(listener), "the task"), self_(std::move(self)), silence_(silence) {}

  void add_to(std::vector<pollfd>& items) const override {
    items.push_back({acceptor_.to_poll(), POLLIN, 0});
    for (const Caller& caller : callers_)
      items.push_back({caller.handshake.descriptor(), caller.handshake.events(), 0});
  }

  std::vector<TaskConnection> admit() override {
    accept();
    std::vector<TaskConnection> admitted;
    for (auto caller = callers_.begin(); caller != callers_.end();) {
      const SocketHandshake::State state = caller->handshake.advance();
      if (state == SocketHandshake::State::kUnderWay && clock_.now() < caller->due) {
        ++caller;
        continue;
      }
      if (state == SocketHandshake::State::kDone) {
        admitted.emplace_back(caller->handshake.take_stream());
      } else {
        has_turned_away_ = true;
      }
      caller = callers_.erase(caller);
    }
    return admitted;
  }

  bool has_turned_away() const override { return has_turned_away_; }

 private:
  // One who has not shown yet that it has the secret. Of more than kMostCallers the oldest is turned away.
  struct Caller {
    SocketHandshake handshake;
    TimePoint due;
  };
  static constexpr std::size_t kMostCallers = 256;
  static constexpr Duration kHandshakeTime = std::chrono::seconds(10);

  void accept() {
    while (true) {
      FileDescriptor socket = acceptor_.accept(SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (!socket.open()) return;
      lose_when_silent(socket.get(), silence_);
      callers_.push_back({SocketHandshake::accepted(std::move(socket), self_), clock_.now() + kHandshakeTime});
      if (callers_.size() <= kMostCallers) continue;
      callers_.pop_front();
      has_turned_away_ = true;
    }
  }

  const SteadyClock clock_;
  Acceptor acceptor_;
  const SocketHandshake::Member self_;
  const Duration silence_;
  std::list<Caller> callers_;
  bool has_turned_away_ = false;
};

}  // namespace

std::unique_ptr<TaskEntrance> local_entrance(FileDescriptor listener) {
  return std::make_unique<LocalEntrance>(std::move(listener));
}

std::unique_ptr<TaskEntrance> network_entrance(FileDescriptor listener, SocketHandshake::Member self,
                                               Duration silence) {
  return std::make_unique<NetworkEntrance>(std::move(listener), std::move(self), silence);
}

}  // namespace syncopate::experiments
