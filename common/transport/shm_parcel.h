// Parcels: send a file descriptor of shared memory over a unix socket, with a description.
#pragma once

#include <cstdint>
#include <optional>

#include "common/os/file_descriptor.h"
#include "common/transport/member_keys.h"

namespace syncopate {

struct ShmParcel {
  // What is sent: an inbox, which begins a link, or an arena.
  enum class Kind : std::uint32_t { kHello = 1, kArena = 2 };
  Kind kind{};
  std::uint32_t sender = 0;   // rank
  std::uint64_t run = 0;      // hash of run and group
  std::uint64_t number = 0;   // of the arena
  MemberKeys::Proof proof{};  // for a hello
};

struct ReceivedParcel {
  ShmParcel parcel;
  FileDescriptor file;
};

// Returns false, with the reason in errno, if it could not be sent.
bool send_parcel(int link, const ShmParcel& parcel, int file);

// Returns the next parcel; `flags` are those of recvmsg(2). Returns nothing if there is none, or if what arrived is not
// one parcel with one file: descriptors that came with it are closed.
std::optional<ReceivedParcel> receive_parcel(int link, int flags);

}  // namespace syncopate
