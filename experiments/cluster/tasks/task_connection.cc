#include "experiments/cluster/tasks/task_connection.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "common/os/readiness.h"

namespace syncopate::experiments {
namespace {

struct Head {
  std::uint8_t kind;
  std::array<std::uint8_t, 3> unused{};
  std::uint32_t bytes;
};

constexpr std::size_t kLargest = std::size_t{1} << 20;
// A local socket keeps the borders of what is written; what is read at once must have room for one such piece.
constexpr std::size_t kPiece = std::size_t{16} << 10;

Status gone() { return Status::peer_lost("the other end of the connection is gone"); }

}  // namespace

Status TaskConnection::send(const TaskMessage& message, TimePoint deadline) {
  const Head head{.kind = static_cast<std::uint8_t>(message.kind),
                  .bytes = static_cast<std::uint32_t>(message.bytes.size())};
  std::string frame(reinterpret_cast<const char*>(&head), sizeof(head));
  frame += message.bytes;
  Status status;
  for (std::size_t at = 0; status.ok() && (at < frame.size() || stream_->holds_bytes());) {
    const iovec part{.iov_base = frame.data() + at, .iov_len = std::min(kPiece, frame.size() - at)};
    const std::optional<std::size_t> taken = stream_->write({&part, at < frame.size() ? 1u : 0u});
    at += taken.value_or(0);
    if (!taken) {
      status = gone();
    } else if ((*taken == 0 || stream_->holds_bytes()) && !ready_before(deadline, descriptor(), POLLOUT)) {
      status = Status::deadline_exceeded("the other end of the connection does not read");
    }
  }
  sodium_memzero(frame.data(), frame.size());  // a command has the run's secret
  return status;
}

Result<std::optional<TaskMessage>> TaskConnection::receive() {
  while (!has_ended_) {
    std::array<char, 4 * kPiece> buffer;
    const iovec place{.iov_base = buffer.data(), .iov_len = buffer.size()};
    const std::optional<std::size_t> count = stream_->read({&place, 1});
    if (!count) has_ended_ = true;
    if (count.value_or(0) == 0) break;
    received_.append(buffer.data(), *count);
    sodium_memzero(buffer.data(), *count);
    if (received_.size() > kLargest) break;  // the rest waits
  }
  Head head{};
  if (received_.size() >= sizeof(head)) {
    std::memcpy(&head, received_.data(), sizeof(head));
    if (head.kind < static_cast<std::uint8_t>(TaskMessage::Kind::kHold) ||
        head.kind > static_cast<std::uint8_t>(TaskMessage::Kind::kHere) || head.bytes > kLargest) {
      return Status::data_loss("bytes that are no message");
    }
    if (received_.size() >= sizeof(head) + head.bytes) {
      TaskMessage message{static_cast<TaskMessage::Kind>(head.kind), received_.substr(sizeof(head), head.bytes)};
      sodium_memzero(received_.data(), sizeof(head) + head.bytes);
      received_.erase(0, sizeof(head) + head.bytes);
      return std::optional(std::move(message));
    }
  }
  if (has_ended_) return gone();
  return std::optional<TaskMessage>();
}

Result<TaskMessage> TaskConnection::receive_by(TimePoint deadline) {
  while (true) {
    SYNCOPATE_ASSIGN_OR_RETURN(std::optional<TaskMessage> message, receive());
    if (message) return std::move(*message);
    if (!ready_before(deadline, descriptor(), POLLIN)) return Status::deadline_exceeded("no answer has come");
  }
}

}  // namespace syncopate::experiments
