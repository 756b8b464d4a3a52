// What processes and the coordinator say to each other: what can be read is turned into the program's own records.
#include "experiments/cluster/control/packed_steps.h"
#include "experiments/cluster/control/trace_records.h"
#include "experiments/cluster/control/wire_records.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"

namespace syncopate::fuzz {
namespace {

using namespace experiments;

void take_steps(const control::Steps& steps) {
  const Result<std::vector<SentStep>> read = unpack_steps(steps.packed());
  if (!read.ok()) return;
  const std::string written = pack_steps(*read);
  require(pack_steps(*unpack_steps(written)) == written, "records are read back as they were written");
}

void take_snapshot(const control::Snapshot& stamp) {
  const WeightsSnapshot snapshot = from_wire(stamp);
  require(rows_of(stamp) == snapshot.rows, "the rows of a snapshot are its rows");
}

void take_trace(const control::Trace& trace) {
  constexpr std::size_t kCapacity = 20;
  TraceInbox inbox(1, kCapacity);
  const TraceInbox::Batch batch = inbox.take(0, trace, Duration(trace.dropped()));
  require(batch.events.size() <= kCapacity, "no process sends more than it keeps");
  require(batch.dropped >= trace.numbers_size() / 10 - static_cast<std::int64_t>(batch.events.size()),
          "what is left out is counted");
  for (const TraceEvent& event : batch.events) {
    require(event.begin <= event.end && event.kind <= kLastTraceKind && event.bytes >= 0, "what is taken is an event");
  }
}

const Harness control_messages("control_messages", [](Bytes bytes) {
  Input input(bytes);
  if (input.coin()) {
    control::FromCoordinator message;
    if (message.ParseFromString(string_of(input.rest())) && message.has_snapshot()) take_snapshot(message.snapshot());
    return;
  }
  control::ToCoordinator message;
  if (!message.ParseFromString(string_of(input.rest()))) return;
  if (message.has_steps()) take_steps(message.steps());
  if (message.has_snapshot()) take_snapshot(message.snapshot());
  if (message.has_trace()) take_trace(message.trace());
  if (message.has_evaluation()) (void)scores_of(message.evaluation());
  if (message.has_heartbeat() && message.heartbeat().has_collective()) {
    (void)from_wire(message.heartbeat().collective());
  }
});

}  // namespace
}  // namespace syncopate::fuzz
