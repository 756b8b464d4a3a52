// RunKeys: the secret of one run. Its processes have it, nobody else does, and whatever they prove to each other or
// encrypt with is derived from it.
//
// The secret lies in memory of its own that is never swapped out nor part of a core dump, as far as the system allows,
// and is wiped with its last copy (libsodium's sodium_malloc). Copies share it; any thread may use one.
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
    std::string secret_key;  // wiped at the end

    ~Pair();
  };

  // A new one, of the kernel's random numbers. Internal where ZeroMQ was built without CURVE.
  static Result<RunKeys> make();

  // One key for each purpose; none tells anything of another, or of the secret (keyed BLAKE2b, RFC 7693).
  Key derive(std::string_view purpose) const;
  // The pair whose secret half is derived so.
  Pair pair(std::string_view purpose) const;

  // 64 characters, and no line break. It is the secret: for a pipe or memory that is lent, never for a command line, a
  // file, the environment or a log.
  SecretText to_text() const;
  // Data loss where that is not what to_text() gives; the message does not show the text.
  static Result<RunKeys> parse(std::string_view text);

 private:
  RunKeys();  // memory for it

  std::shared_ptr<unsigned char> secret_;  // of 32 bytes
};

}  // namespace syncopate
