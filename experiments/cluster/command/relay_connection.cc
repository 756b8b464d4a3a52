#include "experiments/cluster/command/relay_connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/os/resource_limits.h"

namespace syncopate::experiments {
namespace {

// Once there are enough exchanges: clocks drift apart.
constexpr Duration kBetweenQuestions = std::chrono::seconds(1);
constexpr std::size_t kMostBytesAtOnce = std::size_t{1} << 20;  // of one relay, before another's turn

Result<FileDescriptor> file_for_writing(const std::string& path, int flags) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666));
  if (!file.open()) return Status::resource_exhausted(fmt::format("{}: cannot be written: {}", path, strerror(errno)));
  return file;
}

Status write_all(const FileDescriptor& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status::resource_exhausted(fmt::format("{}: cannot be written: {}", path, strerror(errno)));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace

Result<RelayConnection> RelayConnection::open(const std::string& log_file, const std::string& step_file) {
  RelayConnection connection;
  connection.log_file_ = log_file;
  connection.step_file_ = step_file;
  SYNCOPATE_ASSIGN_OR_RETURN(connection.log_, file_for_writing(log_file, O_APPEND));
  SYNCOPATE_ASSIGN_OR_RETURN(connection.steps_, file_for_writing(step_file, O_TRUNC));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return Status::resource_exhausted(fmt::format("cannot make a pipe: {}{}", strerror(errno), limit_behind(errno)));
  }
  connection.read_end_ = FileDescriptor(ends[0]);
  connection.write_end_ = FileDescriptor(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return connection;
}

Status RelayConnection::exchange(int input, const Clock& clock) {
  const Status status = receive(clock);
  if (!status.ok()) read_end_ = FileDescriptor();  // which ends the relay
  const bool is_due = clock_.exchanges() < ClockOffset::kExchanges || clock.now() - last_question_ >= kBetweenQuestions;
  if (ready_ && read_end_.open() && !is_asked_ && is_due) {
    is_asked_ = true;
    last_question_ = clock.now();
    send(input, RelayQuestion{last_question_});
  }
  return status;
}

Status RelayConnection::receive(const Clock& clock) {
  std::string bytes(kMostRelayedBytes, '\0');
  for (std::size_t taken = 0; read_end_.open() && taken < kMostBytesAtOnce;) {
    const ssize_t count = ::read(read_end_.get(), bytes.data(), bytes.size());
    const TimePoint received = clock.now();
    if (count == 0) read_end_ = FileDescriptor();
    if (count <= 0) return {};
    taken += static_cast<std::size_t>(count);
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<RelayMessage> messages,
                               reader_.read(std::string_view(bytes).substr(0, static_cast<std::size_t>(count))));
    for (const RelayMessage& message : messages) SYNCOPATE_RETURN_IF_ERROR(take(message, received));
  }
  return {};
}

void RelayConnection::send(int input, const RelayOrder& order) {
  const std::string line = to_line(order);
  // A line is written as a whole or not at all (pipe(7)).
  if (input >= 0) (void)!::write(input, line.data(), line.size());
}

Status RelayConnection::take(const RelayMessage& message, TimePoint received) {
  if (end_) return Status::data_loss("something comes after the end");
  if (const auto* output = std::get_if<RelayOutput>(&message)) return write_all(log_, output->text, log_file_);
  if (const auto* steps = std::get_if<RelaySteps>(&message)) return write_all(steps_, steps->bytes, step_file_);
  if (const auto* ready = std::get_if<RelayReady>(&message)) {
    if (ready_) return Status::data_loss("it begins twice");
    ready_ = *ready;
  } else if (const auto* clock = std::get_if<RelayClock>(&message)) {
    if (!is_asked_ || clock->sent != last_question_) return Status::data_loss("the time was not asked for");
    is_asked_ = false;
    clock_.add({.sent = clock->sent, .received = clock->received, .answered = clock->answered, .heard = received});
  } else if (const auto* end = std::get_if<RelayEnd>(&message)) {
    end_ = *end;
  }
  return {};
}

}  // namespace syncopate::experiments
