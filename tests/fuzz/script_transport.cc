#include "tests/fuzz/script_transport.h"

#include <algorithm>
#include <memory>

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

// A copy of its own size, so that a sanitizer sees who reads past the payload or after it was let go.
class Copy final : public Message::Lease {
 public:
  explicit Copy(std::span<const std::byte> bytes) : bytes_(new std::byte[bytes.size()]), size_(bytes.size()) {
    std::ranges::copy(bytes, bytes_.get());
  }
  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_;
};

}  // namespace

ScriptTransport::ScriptTransport(int rank, int size, std::vector<Line> script)
    : rank_(rank), size_(size), script_(std::move(script)) {}

Result<std::span<std::byte>> ScriptTransport::allocate(std::size_t bytes) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  if (bytes > kMost) return Status::resource_exhausted("more memory than a script has");
  memory_.emplace_back((bytes + sizeof(float) - 1) / sizeof(float));
  return std::as_writable_bytes(memory_.back().span()).first(bytes);
}

Status ScriptTransport::send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends*,
                             TimePoint) {
  require(peer >= 0 && peer < size_ && peer != rank_, "who is sent to is another member");
  require(header.size() <= kMaxHeaderBytes, "a header has at most kMaxHeaderBytes");
  sent_.push_back(
      {peer, std::string(header), std::string(reinterpret_cast<const char*>(payload.data()), payload.size())});
  return {};
}

Result<Message> ScriptTransport::receive(TimePoint) {
  if (before_each_) before_each_(next_);
  if (next_ == script_.size()) return Status::cancelled("the script is at its end");
  const Line& line = script_[next_++];
  auto copy = std::make_unique<Copy>(line.payload);
  const std::span<const std::byte> payload = copy->bytes();
  return Message(line.from, line.header, payload, std::move(copy));
}

}  // namespace syncopate::fuzz
