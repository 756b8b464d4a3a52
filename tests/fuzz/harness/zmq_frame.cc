// The first part of a message over ZeroMQ.
#include "common/transport/zmq_frame.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

constexpr std::uint64_t kOwnRun = 0x5EED;
constexpr std::uint32_t kSender = 1;

const Harness zmq_frame("zmq_frame", [](Bytes bytes) {
  ZmqPreamble preamble;
  if (objection_to(std::as_bytes(bytes), kOwnRun, kSender, preamble) != nullptr) return;
  require(preamble.from == kSender && preamble.run == kOwnRun, "what is taken is of this member of the run");
  require(bytes.size() <= sizeof(preamble) + kMaxWireHeaderBytes, "a header keeps to its limit");
});

}  // namespace
}  // namespace syncopate::fuzz
