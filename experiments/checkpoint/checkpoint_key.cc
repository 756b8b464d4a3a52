#include "experiments/checkpoint/checkpoint_key.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/os/regular_file.h"
#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kFewest = 32, kMost = 4096;
// Derived keys are bound to this purpose.
constexpr std::string_view kPurpose = "syncopate checkpoint manifest 1";
static_assert(kPurpose.size() >= crypto_generichash_KEYBYTES_MIN);

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

Status check_private(const RegularFile& file, const std::string& path) {
  struct stat found {};
  if (::fstat(file.descriptor.get(), &found) != 0)
    return Status::invalid_argument(fmt::format("cannot be read: {}", std::strerror(errno)));
  if (found.st_uid != ::geteuid() && found.st_uid != 0) {
    return Status::invalid_argument(
        fmt::format("belongs to user {}, who knows what is in it: the key must be your own", found.st_uid));
  }
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) == 0) return {};
  return Status::invalid_argument(
      fmt::format("others may read or change it (mode {:o}): a key is for one user alone; chmod 600 {}",
                  found.st_mode & 07777, path));
}

}  // namespace

void CheckpointKey::Wipe::operator()(const Bytes* bytes) const { sodium_free(const_cast<Bytes*>(bytes)); }

Result<CheckpointKey> CheckpointKey::read(const std::string& path) {
  const std::string shown = printable(path, 4096);
  SYNCOPATE_ASSIGN_OR_RETURN(const RegularFile file, open_regular_file(path));
  if (const Status status = check_private(file, shown); !status.ok()) return status.in(shown);
  // Checks the open file, and not another one that may have taken its name since.
  char secret[kMost + 1];
  const ssize_t count = ::pread(file.descriptor.get(), secret, sizeof(secret), 0);
  Result<CheckpointKey> key = count < 0
                                  ? Status::invalid_argument(fmt::format("cannot be read: {}", std::strerror(errno)))
                                  : of_bytes({secret, static_cast<std::size_t>(count)});
  sodium_memzero(secret, sizeof(secret));
  if (!key.ok()) return key.status().in(shown);
  return key;
}

Result<CheckpointKey> CheckpointKey::of_bytes(std::string_view secret) {
  if (secret.size() < kFewest || secret.size() > kMost) {
    return Status::invalid_argument(fmt::format(
        "holds {}, and a key has {} to {}; make one with: (umask 077; head -c 32 /dev/urandom >FILE)",
        secret.size() > kMost ? fmt::format("more than {} bytes", kMost) : fmt::format("{} bytes", secret.size()),
        kFewest, kMost));
  }
  if (sodium_init() < 0) return Status::internal("libsodium cannot be used");
  auto* const bytes = static_cast<Bytes*>(sodium_malloc(sizeof(Bytes)));
  if (bytes == nullptr) return Status::resource_exhausted("no memory for a key");
  crypto_generichash(bytes->data(), bytes->size(), bytes_of(secret), secret.size(), bytes_of(kPurpose),
                     kPurpose.size());
  CheckpointKey key;
  key.key_ = std::shared_ptr<const Bytes>(bytes, Wipe());
  return key;
}

Digest CheckpointKey::mac_of(std::string_view text) const {
  Digest mac;
  crypto_generichash(mac.data(), mac.size(), bytes_of(text), text.size(), key_->data(), key_->size());
  return mac;
}

bool CheckpointKey::is_mac_of(std::string_view text, const Digest& mac) const {
  const Digest right = mac_of(text);
  return sodium_memcmp(right.data(), mac.data(), mac.size()) == 0;
}

}  // namespace syncopate::experiments
