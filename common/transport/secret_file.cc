#include "common/transport/secret_file.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/os/regular_file.h"
#include "common/text/printable_text.h"

namespace syncopate {
namespace {

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

Status check_secret_size(std::size_t bytes) {
  if (bytes >= kFewestSecretBytes && bytes <= kMostSecretBytes) return {};
  return Status::invalid_argument(fmt::format(
      "holds {}, and a key has {} to {}; make one with: (umask 077; head -c 32 /dev/urandom >FILE)",
      bytes > kMostSecretBytes ? fmt::format("more than {} bytes", kMostSecretBytes) : fmt::format("{} bytes", bytes),
      kFewestSecretBytes, kMostSecretBytes));
}

Result<SecretText> read_secret_file(const std::string& path) {
  const std::string shown = printable(path, 4096);
  SYNCOPATE_ASSIGN_OR_RETURN(const RegularFile file, open_regular_file(path));
  if (const Status status = check_private(file, shown); !status.ok()) return status.in(shown);
  // Reads the file that was checked, and not another one that may have taken its name since.
  char bytes[kMostSecretBytes + 1];
  const ssize_t count = ::pread(file.descriptor.get(), bytes, sizeof(bytes), 0);
  if (count < 0) return Status::invalid_argument(fmt::format("{}: cannot be read: {}", shown, std::strerror(errno)));
  SecretText secret({bytes, static_cast<std::size_t>(count)});
  sodium_memzero(bytes, sizeof(bytes));
  if (const Status status = check_secret_size(secret.view().size()); !status.ok()) return status.in(shown);
  return secret;
}

}  // namespace syncopate
