// Parcels: how a file descriptor of shared memory goes over a unix socket, with a word on what it is.
#pragma once

#include <cstdint>
#include <optional>

#include "common/os/file_descriptor.h"
#include "common/transport/member_keys.h"

namespace syncopate {

struct ShmParcel {
  // What is handed over: an inbox, which begins a link, or an arena.
  enum class Kind : std::uint32_t { kHello = 1, kArena = 2 };
  Kind kind{};
  std::uint32_t sender = 0;   // rank
  std::uint64_t run = 0;      // hash of run and group
  std::uint64_t number = 0;   // of the arena
  MemberKeys::Proof proof{};  // of a hello
};

struct ReceivedParcel {
  ShmParcel parcel;
  FileDescriptor file;
};

// False, and errno says why, if it could not be sent.
bool send_parcel(int link, const ShmParcel& parcel, int file);

// The next parcel; `flags` are those of recvmsg(2). Nothing if there is none, or if what came is not one parcel with
// one file: descriptors that came with it are closed.
std::optional<ReceivedParcel> receive_parcel(int link, int flags);

}  // namespace syncopate
