// ScriptLink: a connection with a process of a script whose ranks are simulated. Both sides send lines of JSON, and the
// process also its memory. The other side is python/syncopate/_ranks.py.
#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/os/file_descriptor.h"
#include "common/status.h"

namespace syncopate::experiments {

// Memory of another process, as this one sees it.
class SharedMemory {
 public:
  explicit SharedMemory(FileDescriptor file) : file_(std::move(file)) {}
  SharedMemory(SharedMemory&& other) noexcept
      : file_(std::move(other.file_)), bytes_(std::exchange(other.bytes_, {})) {}
  ~SharedMemory();

  // Returns its first `size` bytes, valid until the next call. Fails with data loss if it is smaller.
  Result<std::span<std::byte>> first(std::size_t size);

 private:
  FileDescriptor file_;
  std::span<std::byte> bytes_;
};

class ScriptLink {
 public:
  explicit ScriptLink(FileDescriptor socket) : socket_(std::move(socket)) {}

  int handle() const { return socket_.get(); }
  // Reads what has come, without waiting. Fails with data loss for what is no line of JSON.
  Status read();
  // The next line that was read and not taken.
  std::optional<nlohmann::json> take();
  // Whether the process has closed its end, and all lines are taken.
  bool has_ended() const { return at_end_ && lines_.empty(); }
  // The memory that came with the lines so far; once.
  std::vector<SharedMemory> take_memory() { return std::exchange(memory_, {}); }
  // A process that has ended is not told.
  void send(const nlohmann::json& line);

 private:
  FileDescriptor socket_;
  std::string unread_;
  std::deque<nlohmann::json> lines_;
  std::vector<SharedMemory> memory_;
  bool at_end_ = false;
};

// What a line has under a name; otherwise, nothing, or `other`.
std::string text_in(const nlohmann::json& line, const char* name);
double number_in(const nlohmann::json& line, const char* name, double other = std::numeric_limits<double>::quiet_NaN());
// Brought into [least, most].
int whole_number_in(const nlohmann::json& line, const char* name, int least, int most, int other);
// For a line that no reader knows.
Status unknown_words(int rank, const nlohmann::json& line);

// Where processes of a script connect: an address of this host that the kernel has chosen and that no file stands for.
class ScriptDoor {
 public:
  static Result<ScriptDoor> open();

  // As the environment variable has it: the abstract name, in hexadecimal digits.
  const std::string& address() const { return address_; }
  int handle() const { return socket_.get(); }
  // Returns the next connection of this user's, if there is one.
  std::optional<ScriptLink> accept();

 private:
  FileDescriptor socket_;
  std::string address_;
};

}  // namespace syncopate::experiments
