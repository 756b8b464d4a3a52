// Records of an encrypted connection, some of them right and others not: what is opened is what was sealed, in order,
// and nothing is given out from the first wrong record on.
#include <fcntl.h>
#include <sys/socket.h>

#include <array>

#include "common/transport/socket_frame.h"
#include "common/transport/socket_stream.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"

namespace syncopate::fuzz {
namespace {

constexpr SocketCipher::Kind kKind = SocketCipher::Kind::kChaCha20Poly1305;
constexpr SocketCipher::Key kKey = {7};

std::pair<FileDescriptor, FileDescriptor> connected_pair() {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0, "a socket pair can be made");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::string sealed_record(SocketCipher& cipher, Bytes plain) {
  const RecordHead head{static_cast<std::uint32_t>(plain.size() + SocketCipher::kTagBytes)};
  std::string record(sizeof(head) + head.sealed_bytes, '\0');
  std::memcpy(record.data(), &head, sizeof(head));
  cipher.seal(std::as_bytes(plain), reinterpret_cast<std::byte*>(record.data() + sizeof(head)));
  return record;
}

const Harness sealed_stream("sealed_stream", [](Bytes bytes) {
  require(sodium_init() >= 0, "libsodium can be used");
  Input input(bytes);
  auto [peer, own] = connected_pair();
  SocketCipher sealer(kKind, kKey);
  std::string wire, expected;
  bool intact = true;
  while (!input.empty() && wire.size() < 16 * 1024) {
    const bool right = input.below(4) != 0;
    const Bytes part = input.bytes(1 + input.byte());
    if (right && !part.empty()) {
      wire += sealed_record(sealer, part);
      if (intact) expected += text_of(part);
    } else if (!part.empty()) {
      wire += text_of(part);
      intact = false;
    }
  }
  require(send(peer.get(), wire.data(), wire.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(wire.size()) || wire.empty(),
          "the pair takes what is sent");
  peer = FileDescriptor();
  const auto stream = make_sealed_stream(std::move(own), SocketCipher(kKind, kKey), SocketCipher(kKind, kKey));
  std::string opened;
  std::array<char, 100> first, second;
  while (true) {
    const std::array<iovec, 2> places{iovec{first.data(), first.size()}, iovec{second.data(), second.size()}};
    const std::optional<std::size_t> count = stream->read(places);
    if (!count) break;
    require(*count <= first.size() + second.size(), "no more is given than there is room for");
    opened.append(first.data(), std::min(*count, first.size()));
    if (*count > first.size()) opened.append(second.data(), *count - first.size());
  }
  require(opened == expected, "what is opened is what was sealed before the first wrong record");
});

}  // namespace
}  // namespace syncopate::fuzz
