// The beginning of a connection, as an intruder may shape it: nobody without the run's keys gets through.
#include "common/transport/socket_handshake.h"

#include <sys/socket.h>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"

namespace syncopate::fuzz {
namespace {

constexpr std::uint64_t kRun = 0x5EED;
constexpr int kRank = 1, kSize = 3;

const RunKeys& keys() {
  static const RunKeys made = *RunKeys::make();
  return made;
}

// A hello that would be right, but for what the input changes.
std::string hello_of(Input& input, int from) {
  Hello hello{.run = kRun, .from = static_cast<std::uint32_t>(from), .to = kRank};
  if (input.coin()) hello.encrypts = 1;
  if (input.coin()) hello.cipher = static_cast<std::uint32_t>(input.number());
  if (input.coin()) hello.from = static_cast<std::uint32_t>(input.number());
  if (input.coin()) hello.to = static_cast<std::uint32_t>(input.number());
  if (input.coin()) hello.run = input.value<std::uint64_t>();
  if (input.coin()) hello.version = static_cast<std::uint32_t>(input.number());
  for (unsigned char& byte : hello.key) byte = input.byte();
  return std::string(reinterpret_cast<const char*>(&hello), sizeof(hello));
}

const Harness socket_handshake("socket_handshake", [](Bytes bytes) {
  require(sodium_init() >= 0, "libsodium can be used");
  Input input(bytes);
  const SocketHandshake::Member self{
      .run = kRun, .rank = kRank, .size = kSize, .keys = keys(), .encrypted = input.coin()};
  const bool connects = input.coin();
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0, "a socket pair can be made");
  FileDescriptor peer(ends[0]);
  SocketHandshake handshake = connects ? SocketHandshake::connecting(FileDescriptor(ends[1]), self, 0)
                                       : SocketHandshake::accepted(FileDescriptor(ends[1]), self);
  SocketHandshake::State state = handshake.advance();
  while (!input.empty() && state == SocketHandshake::State::kUnderWay) {
    const std::string said =
        input.coin() ? hello_of(input, connects ? 0 : 2) : string_of(input.bytes(1 + input.byte()));
    (void)!send(peer.get(), said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    state = handshake.advance();
  }
  require(state != SocketHandshake::State::kDone, "nobody gets through without the run's keys");
});

}  // namespace
}  // namespace syncopate::fuzz
