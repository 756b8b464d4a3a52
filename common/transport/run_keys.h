// RunKeys: what the processes of one run prove to each other that they belong to it, where they are on several hosts.
//
// Two CURVE pairs (CurveZMQ, rfc.zeromq.org/spec/26; Bernstein's CurveCP): who listens has one, who connects the other.
// A stranger knows neither: it cannot speak to a listener, since it lacks the listener's public key, is not let in,
// since it lacks the connector's secret one, and can be nobody's listener. All processes of a run have both, and trust
// each other.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate {

struct RunKeys {
  struct Pair {
    std::string public_key;  // 40 characters, in Z85 (rfc.zeromq.org/spec/32)
    std::string secret_key;
  };
  Pair listener;
  Pair connector;

  // New ones, of the kernel's random numbers. Internal where ZeroMQ was built without CURVE.
  static Result<RunKeys> make();

  // One line, without its end. It is the secret: for a pipe, never for a command line, a file, the environment or a
  // log.
  std::string to_text() const;
  // The 32 bytes of a key of a pair.
  static std::array<unsigned char, 32> bytes_of(const std::string& key);
  // Data loss where that is not what to_text() gives; the message does not show the text.
  static Result<RunKeys> parse(std::string_view text);
};

}  // namespace syncopate
