// Frames of a plain socket: whatever comes, and in whatever pieces, messages keep to their limits, and what is no frame
// ends the connection before memory is taken for it.
#include "common/transport/socket_link.h"

#include <algorithm>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"

namespace syncopate::fuzz {
namespace {

// Gives the input's bytes, some at a time.
class FedStream final : public SocketStream {
 public:
  explicit FedStream(Bytes bytes) : input_(bytes) {}

  int descriptor() const override { return -1; }
  std::optional<std::size_t> write(std::span<const iovec> parts) override {
    std::size_t taken = 0;
    for (const iovec& part : parts) taken += part.iov_len;
    return taken;
  }
  bool holds_bytes() const override { return false; }
  std::optional<std::size_t> read(std::span<const iovec> places) override {
    if (input_.empty()) return std::nullopt;
    std::size_t left = 1 + input_.byte(), given = 0;
    for (const iovec& place : places) {
      const Bytes bytes = input_.bytes(std::min(left, place.iov_len));
      std::ranges::copy(bytes, static_cast<std::uint8_t*>(place.iov_base));
      given += bytes.size();
      left -= bytes.size();
    }
    return given;
  }
  bool has_received() const override { return false; }

 private:
  Input input_;
};

// Small, so that what a head alone claims shows as memory that no input can have filled.
constexpr std::uint64_t kLargest = 1 << 20;

const Harness socket_link("socket_link", [](Bytes input) {
  BufferPool pool;
  std::deque<Message> inbox;
  SocketLink link(1, std::make_unique<FedStream>(input), pool, kLargest);
  while (!link.ended()) link.receive(inbox);
  std::size_t bytes = 0;
  for (const Message& message : inbox) {
    require(message.from() == 1 && message.header().size() <= kMaxWireHeaderBytes, "a header keeps to its limit");
    bytes += message.header().size() + message.payload().size();
  }
  require(bytes <= input.size(), "no message comes from nowhere");
  require(!link.corrupt() || link.deaf(), "a connection that was given up is not sent to");
});

}  // namespace
}  // namespace syncopate::fuzz
