// The first frame of a message over ZeroMQ.
#include "common/transport/zmq_frame.h"

#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"

namespace syncopate::fuzz {
namespace {

constexpr std::uint64_t kOwnRun = 0x5EED;
constexpr int kMembers = 4;

const Harness zmq_frame("zmq_frame", [](Bytes bytes) {
  Input input(bytes);
  const std::size_t payload = input.number();
  const Bytes head = input.rest();
  ZmqPreamble preamble;
  if (objection_to(std::as_bytes(head), payload, kOwnRun, kMembers, preamble) != nullptr) return;
  require(preamble.from < kMembers && preamble.run == kOwnRun && preamble.payload_bytes == payload,
          "what is taken is of a member of the run");
  require(head.size() <= sizeof(preamble) + kMaxWireHeaderBytes, "a header keeps to its limit");
});

}  // namespace
}  // namespace syncopate::fuzz
