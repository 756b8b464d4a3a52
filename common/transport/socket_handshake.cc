#include "common/transport/socket_handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace syncopate {
namespace {

// A record with nothing in it.
struct Proof {
  RecordHead head{SocketCipher::kTagBytes};
  std::array<std::byte, SocketCipher::kTagBytes> sealed{};
};

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

SocketHandshake::SocketHandshake(FileDescriptor socket, const Member& self, int peer)
    : socket_(std::move(socket)), self_(&self), peer_(peer), connects_(peer >= 0) {}

SocketHandshake SocketHandshake::connecting(FileDescriptor socket, const Member& self, int peer) {
  SocketHandshake handshake(std::move(socket), self, peer);
  handshake.say_hello();
  return handshake;
}

SocketHandshake SocketHandshake::accepted(FileDescriptor socket, const Member& self) {
  return SocketHandshake(std::move(socket), self, -1);
}

SocketHandshake::State SocketHandshake::advance() {
  if (!is_greeted_ && said() && heard(sizeof(Hello))) accept_hello();
  if (is_greeted_ && !is_proven_ && said() && heard(sizeof(Hello) + sizeof(Proof))) accept_proof();
  const bool done = is_greeted_ && is_proven_ && said();
  if (failed_) return State::kFailed;
  return done ? State::kDone : State::kUnderWay;
}

short SocketHandshake::events() const { return to_say_.empty() ? POLLIN : POLLOUT; }

std::unique_ptr<SocketStream> SocketHandshake::take_stream() {
  if (self_->encrypted) return make_sealed_stream(std::move(socket_), *out_, *in_);
  return make_plain_stream(std::move(socket_));
}

void SocketHandshake::say_hello() {
  const Hello hello{.run = self_->run,
                    .from = static_cast<std::uint32_t>(self_->rank),
                    .to = static_cast<std::uint32_t>(peer_),
                    .cipher = static_cast<std::uint32_t>(SocketCipher::best()),
                    .encrypts = self_->encrypted ? 1u : 0u,
                    .key = pair_.public_key()};
  own_hello_.assign(reinterpret_cast<const char*>(&hello), sizeof(hello));
  to_say_ += own_hello_;
}

void SocketHandshake::accept_hello() {
  Hello hello;
  std::memcpy(&hello, heard_.data(), sizeof(hello));
  const bool knows_us = hello.magic == Hello::kMagic && hello.version == Hello::kVersion && hello.run == self_->run &&
                        hello.to == static_cast<std::uint32_t>(self_->rank) &&
                        hello.encrypts == (self_->encrypted ? 1u : 0u) &&
                        (hello.cipher == static_cast<std::uint32_t>(SocketCipher::Kind::kChaCha20Poly1305) ||
                         hello.cipher == static_cast<std::uint32_t>(SocketCipher::Kind::kAes256Gcm));
  const bool is_due = connects_ ? hello.from == static_cast<std::uint32_t>(peer_)
                                : hello.from > hello.to && hello.from < static_cast<std::uint32_t>(self_->size);
  if (!knows_us || !is_due) {
    failed_ = true;
    return;
  }
  peer_ = static_cast<int>(hello.from);
  if (!connects_) say_hello();
  agree(hello);
  is_greeted_ = true;
}

void SocketHandshake::agree(const Hello& others) {
  const std::string theirs = heard_.substr(0, sizeof(Hello));
  EphemeralPair::Session session;
  if (!pair_.agree(self_->keys, others.key, connects_ ? own_hello_ + theirs : theirs + own_hello_, session)) {
    failed_ = true;
    return;
  }
  const bool both_have_aes = others.cipher == static_cast<std::uint32_t>(SocketCipher::Kind::kAes256Gcm) &&
                             SocketCipher::best() == SocketCipher::Kind::kAes256Gcm;
  const auto kind = both_have_aes ? SocketCipher::Kind::kAes256Gcm : SocketCipher::Kind::kChaCha20Poly1305;
  out_.emplace(kind, connects_ ? session.from_connector : session.from_listener);
  in_.emplace(kind, connects_ ? session.from_listener : session.from_connector);
  sodium_memzero(&session, sizeof(session));
  if (!connects_) say_proof();
}

void SocketHandshake::say_proof() {
  Proof proof;
  out_->seal({}, proof.sealed.data());
  to_say_.append(reinterpret_cast<const char*>(&proof), sizeof(proof));
}

void SocketHandshake::accept_proof() {
  Proof proof;
  std::memcpy(&proof, heard_.data() + sizeof(Hello), sizeof(proof));
  std::byte nothing{};
  is_proven_ = proof.head.sealed_bytes == sizeof(proof.sealed) && in_->open(proof.sealed, &nothing);
  failed_ = !is_proven_;
  if (is_proven_ && connects_) say_proof();
}

bool SocketHandshake::said() {
  while (!failed_ && !to_say_.empty()) {
    const ssize_t bytes = send(socket_.get(), to_say_.data(), to_say_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (bytes <= 0) {
      failed_ = !would_wait();
      return false;
    }
    to_say_.erase(0, static_cast<std::size_t>(bytes));
  }
  return !failed_;
}

// Takes no byte more than that: what follows is the stream's.
bool SocketHandshake::heard(std::size_t bytes) {
  while (!failed_ && heard_.size() < bytes) {
    char part[256];
    const ssize_t count = recv(socket_.get(), part, std::min(sizeof(part), bytes - heard_.size()), MSG_DONTWAIT);
    if (count <= 0) {
      failed_ = count == 0 || !would_wait();
      return false;
    }
    heard_.append(part, static_cast<std::size_t>(count));
  }
  return !failed_;
}

}  // namespace syncopate
