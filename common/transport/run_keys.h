// RunKeys: the secret of one run. Only its processes have it, and all that they prove to each other or encrypt with is
// derived from it.
//
// The secret lies in memory of its own that is never swapped out and not part of a core dump, as far as the system
// allows, and is wiped with its last copy (libsodium's sodium_malloc). Copies share it; any thread may use one.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "common/status.h"
#include "common/transport/secret_text.h"

namespace syncopate {

class RunKeys {
 public:
  using Key = std::array<unsigned char, 32>;

  // A key pair of CURVE (CurveZMQ, rfc.zeromq.org/spec/26), in Z85 (rfc.zeromq.org/spec/32): 40 characters each.
  struct Pair {
    std::string public_key;
    std::string secret_key;  // wiped on destruction

    ~Pair();
  };

  // Makes a new one, from the kernel's random numbers. Fails with internal if ZeroMQ was built without CURVE.
  static Result<RunKeys> make();

  // Returns those of one job of several, `job`, that have a secret of the person's own in common. Jobs of different
  // names have different keys. Fails with internal if ZeroMQ was built without CURVE.
  static Result<RunKeys> of_job(const SecretText& secret, std::string_view job);

  // Returns one key for each purpose; none reveals anything of another, or of the secret (keyed BLAKE2b, RFC 7693).
  Key derive(std::string_view purpose) const;
  // Returns the pair whose secret half is derived in this way.
  Pair pair(std::string_view purpose) const;

  // Returns 64 characters without a line break. They are the secret: send them only through a pipe or loaned memory,
  // never on a command line or in a file, the environment or a log.
  SecretText to_text() const;
  // Fails with data loss if `text` is not what to_text() returns; the message does not show the text.
  static Result<RunKeys> parse(std::string_view text);

 private:
  RunKeys();  // memory for it

  std::shared_ptr<unsigned char> secret_;  // 32 bytes
};

}  // namespace syncopate
