#include "tests/software_gpu/streams.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/memory.h"
#include "tests/software_gpu/order.h"
#include "tests/software_gpu/runtime_call.h"
#include "tests/software_gpu/settings.h"
#include "tests/software_gpu/where.h"

namespace software_gpu {
namespace {

using Clock = std::chrono::steady_clock;

// What nobody waits for begins after so long.
constexpr std::chrono::milliseconds kAtLast{2};
// So many pieces of work a stream takes. A call that gives one more waits.
constexpr std::size_t kQueue = 1024;

struct Piece {
  std::string name;
  Work work;
  bool is_awaited = false;
  std::shared_ptr<const Knowledge> of_host = known_to_host();  // when it was given
  const void* given_by = caller();
  std::uint32_t number = 0;  // in the stream's lane, once it has begun
};

struct Stream {
  int device = 0;
  std::deque<Piece> pieces;
  std::size_t lane = new_lanes(1);
  Knowledge knowledge;               // when its last piece was done
  std::shared_ptr<Capture> capture;  // null: none
  std::vector<std::size_t> after;    // nodes of the capture that the next one depends on
};

// One time that an event was recorded.
struct Record {
  bool is_reached = false;
  Clock::time_point time;
  Knowledge knowledge;
};

struct Event {
  std::shared_ptr<Record> last;      // null: never recorded
  std::shared_ptr<Capture> capture;  // in which it was recorded instead; null: none
  std::vector<std::size_t> after;    // nodes
};

struct Streams {
  std::vector<std::shared_ptr<Stream>> all;  // also those that were destroyed and have work left
  std::map<cudaStream_t, std::shared_ptr<Stream>> by_handle;
  std::map<cudaEvent_t, std::shared_ptr<Event>> events;
  std::vector<std::shared_ptr<void>> handles;  // kept, so that no address is given twice
  Clock::time_point last_done = Clock::now();
  std::uint64_t pieces = 0;  // done or begun so far
  pid_t watched = 0;         // the process whose thread does what nobody waits for
  bool is_over = false;
};

Streams& streams() {
  static auto* const made = new Streams;
  return *made;
}

// Told when there is a function of the host's. Waits for it hold the machine's lock.
std::condition_variable_any& given() {
  static auto* const made = new std::condition_variable_any;
  return *made;
}

Stream* stream_of(cudaStream_t handle) {
  const auto found = streams().by_handle.find(handle == nullptr ? cudaStreamLegacy : handle);
  return found == streams().by_handle.end() ? nullptr : found->second.get();
}

std::shared_ptr<Event> event_of(cudaEvent_t handle, const char* call) {
  const auto found = streams().events.find(handle);
  if (found != streams().events.end()) return found->second;
  find_fault(std::string(call) + " of what is no event");
  return nullptr;
}

// Whether a function of the host's is behind work: somebody waits for it to be called.
bool is_awaited() {
  return std::ranges::any_of(streams().all, [](const auto& stream) {
    return std::ranges::any_of(stream->pieces, [](const Piece& piece) { return piece.is_awaited; });
  });
}

// Adds nodes to those that the stream's next one depends on.
void depend(std::vector<std::size_t>& after, const std::vector<std::size_t>& nodes) {
  after.insert(after.end(), nodes.begin(), nodes.end());
  std::ranges::sort(after);
  after.erase(std::ranges::unique(after).begin(), after.end());
}

// Makes the work of recording an event: its time is known when that is done.
Make record_of(std::shared_ptr<Event> event) {
  return [event = std::move(event)]() -> Work {
    event->capture.reset();
    event->last = std::make_shared<Record>();
    return [record = event->last] {
      record->is_reached = true;
      record->time = Clock::now();
      record->knowledge = Running::now()->knowledge();
      return Progress::kDone;
    };
  };
}

// Makes the work of waiting for what an event has been recorded for by then.
Make wait_of(std::shared_ptr<Event> event) {
  return [event = std::move(event)]() -> Work {
    return [record = event->last] {
      if (record == nullptr) return Progress::kDone;
      if (!record->is_reached) return Progress::kWaits;
      Running::now()->knowledge().join(record->knowledge);
      return Progress::kDone;
    };
  };
}

// Whether all of it is done; then the host knows.
bool has_ended(const Stream& stream) {
  if (stream.pieces.empty()) tell_host(stream.knowledge);
  return stream.pieces.empty();
}

bool has_ended(const std::shared_ptr<Record>& record) {
  if (!record) return true;
  if (record->is_reached) tell_host(record->knowledge);
  return record->is_reached;
}

// An event that a capture has recorded stands for nothing that is ever done.
cudaError_t check_not_captured(const Event& event, const char* call) {
  if (!event.capture) return cudaSuccess;
  find_fault(std::string(call) + " of an event that was last recorded in a capture");
  return invalidate(*event.capture, cudaErrorCapturedEvent);
}

// A child of fork() has no such thread.
void watch() {
  if (streams().watched == getpid()) return;
  streams().watched = getpid();
  std::thread([] {
    std::unique_lock hold(machine_lock());
    while (!streams().is_over) {
      const bool has_moved = is_awaited() && do_some(64);
      if (!has_moved) given().wait_for(hold, is_awaited() ? std::chrono::microseconds(50) : kAtLast / 2);
      if (Clock::now() - streams().last_done > kAtLast) do_some(4);
    }
  }).detach();
}

std::vector<std::shared_ptr<Stream>> ready_streams() {
  std::vector<std::shared_ptr<Stream>> ready;
  for (const auto& stream : streams().all) {
    if (!stream->pieces.empty()) ready.push_back(stream);
  }
  arrange(ready);
  return ready;
}

Progress go_on(Stream& stream) {
  if (sticky_error() != cudaSuccess) return Progress::kDone;
  Piece& piece = stream.pieces.front();
  if (piece.number == 0) {
    stream.knowledge.join(*piece.of_host);
    piece.number = stream.knowledge.add(stream.lane);
  }
  const OpenMemory open;
  const Running running(piece.name, piece.given_by, stream.lane, piece.number, stream.knowledge);
  return piece.work();
}

bool do_one() {
  for (const std::shared_ptr<Stream>& stream : ready_streams()) {
    if (settings().fails_at != 0 && ++streams().pieces == settings().fails_at) fail_for_good(cudaErrorECCUncorrectable);
    const Progress progress = go_on(*stream);
    if (progress == Progress::kWaits) continue;
    if (progress == Progress::kDone) stream->pieces.pop_front();
    streams().last_done = Clock::now();
    return true;
  }
  return false;
}

template <typename Done>
cudaError_t wait_until(const Done& is_done) {
  while (true) {
    bool has_moved = false;
    {
      const std::lock_guard hold(machine_lock());
      if (sticky_error() != cudaSuccess) return remember(sticky_error());
      if (is_done()) return cudaSuccess;
      const OpenMemory open;
      for (int i = 0; i < 64 && !is_done() && (has_moved = do_one()); ++i) {
      }
    }
    if (!has_moved) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace

cudaError_t check_stream(cudaStream_t handle) {
  const Stream* const stream = stream_of(handle);
  if (stream != nullptr && stream->device == device_of_thread()) {
    const bool is_invalid = stream->capture && stream->capture->is_invalid;
    return is_invalid ? remember(cudaErrorStreamCaptureInvalidated) : cudaSuccess;
  }
  find_fault(stream == nullptr ? "work for a stream that is not there" : "work for a stream of another device");
  return remember(cudaErrorInvalidResourceHandle);
}

void give(cudaStream_t stream, std::string name, std::function<void()> work) {
  give_made(stream, std::move(name), always(std::move(work)));
}

void give_made(cudaStream_t handle, std::string name, Make make, bool is_awaited) {
  Stream& stream = *stream_of(handle);
  if (!stream.capture) {
    while (stream.pieces.size() >= kQueue) {
      if (do_some(1)) continue;
      // Work that other processes take part in ends without this thread; a host that nobody calls waits for ever.
      if (std::ranges::none_of(stream.pieces, &Piece::is_awaited)) break;
      find_fault(name + ": the stream's queue is full, and the call would wait, without a deadline");
      break;
    }
    stream.pieces.push_back({std::move(name), make(), is_awaited});
    if (is_awaited) given().notify_one();
    watch();
    return;
  }
  std::vector<Node>& nodes = stream.capture->graph->nodes;
  const std::size_t lane = stream.capture->lane_of(stream.lane);
  nodes.push_back({std::move(name), std::move(make), stream.after, lane, caller()});
  stream.after = {nodes.size() - 1};
}

cudaStream_t legacy_stream() {
  std::shared_ptr<Stream>& stream = streams().by_handle[cudaStreamLegacy];
  if (!stream) {
    stream = std::make_shared<Stream>();
    streams().all.push_back(stream);
  }
  stream->device = device_of_thread();
  return cudaStreamLegacy;
}

cudaError_t begin_capture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  if (handle == nullptr || handle == cudaStreamLegacy) return remember(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t wrong = check_stream(handle)) return wrong;
  Stream& stream = *stream_of(handle);
  if (stream.capture) return remember(cudaErrorIllegalState);
  stream.capture = std::make_shared<Capture>();
  stream.capture->origin = handle;
  stream.capture->mode = mode;
  add_capture(stream.capture);
  return cudaSuccess;
}

cudaError_t end_capture(cudaStream_t handle, std::shared_ptr<const Graph>& graph) {
  const std::shared_ptr<Capture> capture = capture_of(handle);
  if (!capture) return remember(cudaErrorIllegalState);
  if (capture->origin != handle) return invalidate(*capture, cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
    return invalidate(*capture, cudaErrorStreamCaptureWrongThread);
  }
  const bool is_joined = capture->is_joined(stream_of(handle)->after);
  for (const auto& stream : streams().all) {
    if (stream->capture != capture) continue;
    stream->capture.reset();
    stream->after.clear();
  }
  capture->is_over = true;
  if (capture->is_invalid) return remember(cudaErrorStreamCaptureInvalidated);
  if (!is_joined) return invalidate(*capture, cudaErrorStreamCaptureUnjoined);
  graph = std::move(capture->graph);  // events that remember the capture do not keep its work
  return cudaSuccess;
}

std::shared_ptr<Capture> capture_of(cudaStream_t handle) {
  const Stream* const stream = stream_of(handle);
  return stream == nullptr ? nullptr : stream->capture;
}

bool do_some(int pieces) {
  const OpenMemory open;
  bool has_done = false;
  for (int i = 0; i < pieces && do_one(); ++i) has_done = true;
  return has_done;
}

cudaError_t wait_for_stream(cudaStream_t handle) {
  std::shared_ptr<Stream> stream;
  {
    const std::lock_guard hold(machine_lock());
    if (handle == nullptr || handle == cudaStreamLegacy) handle = legacy_stream();
    if (const cudaError_t wrong = check_stream(handle)) return wrong;
    stream = streams().by_handle[handle];
    if (stream->capture) return invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported);
  }
  return wait_until([&] { return has_ended(*stream); });
}

cudaError_t wait_for_all() {
  return wait_until(
      [] { return std::ranges::all_of(streams().all, [](const auto& stream) { return has_ended(*stream); }); });
}

void check_streams_at_end() {
  streams().is_over = true;
  streams().by_handle.erase(cudaStreamLegacy);
  if (const std::size_t left = streams().by_handle.size(); left > 0) {
    find_fault("leak: " + std::to_string(left) + " streams");
  }
  if (const std::size_t left = streams().events.size(); left > 0) {
    find_fault("leak: " + std::to_string(left) + " events");
  }
}

}  // namespace software_gpu

using namespace software_gpu;

namespace {

cudaError_t record(cudaEvent_t handle, cudaStream_t stream, unsigned flags) {
  const std::shared_ptr<Event> event = event_of(handle, "cudaEventRecord");
  if (!event) return remember(cudaErrorInvalidResourceHandle);
  if (const cudaError_t wrong = check_stream(stream)) return wrong;
  const std::shared_ptr<Capture> capture = capture_of(stream);
  const bool is_external = flags == cudaEventRecordExternal;
  if (is_external && !capture) return remember(cudaErrorInvalidValue);
  if (capture && !is_external) {
    event->capture = capture;
    event->after = stream_of(stream)->after;
    return cudaSuccess;
  }
  give_made(stream, "cudaEventRecord", record_of(event));
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return answer({"cudaStreamCreateWithFlags"}, kAfterFailure, [&] {
    if (flags != cudaStreamNonBlocking) find_fault("a stream that waits for the default stream: not modelled");
    auto stream = std::make_shared<Stream>();
    stream->device = device_of_thread();
    *handle = reinterpret_cast<cudaStream_t>(stream.get());
    streams().all.push_back(stream);
    streams().handles.push_back(stream);
    streams().by_handle[*handle] = std::move(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const Call call("cudaStreamDestroy");
  if (const std::shared_ptr<Capture> capture = capture_of(handle)) {
    find_fault("cudaStreamDestroy of a stream that captures");
    return invalidate(*capture, cudaErrorStreamCaptureUnsupported);
  }
  if (streams().by_handle.erase(handle) > 0) return sticky_error();
  find_fault("cudaStreamDestroy of what is no stream");
  return remember(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned /*flags*/) {
  return answer({"cudaEventCreateWithFlags"}, kAfterFailure, [&] {
    auto event = std::make_shared<Event>();
    *handle = reinterpret_cast<cudaEvent_t>(event.get());
    streams().handles.push_back(event);
    streams().events[*handle] = std::move(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  const Call call("cudaEventDestroy");
  if (streams().events.erase(handle) > 0) return sticky_error();
  find_fault("cudaEventDestroy of what is no event");
  return remember(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return answer({"cudaEventRecord"}, kAfterFailure, [&] { return record(event, stream, cudaEventRecordDefault); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return answer({"cudaEventRecordWithFlags"}, kAfterFailure, [&] { return record(event, stream, flags); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t of_event, unsigned flags) {
  return answer({"cudaStreamWaitEvent"}, kAfterFailure, [&] {
    const std::shared_ptr<Event> event = event_of(of_event, "cudaStreamWaitEvent");
    if (!event) return remember(cudaErrorInvalidResourceHandle);
    if (const cudaError_t wrong = check_stream(handle)) return wrong;
    Stream& stream = *stream_of(handle);
    const bool is_external = flags == cudaEventWaitExternal;
    if (is_external && !stream.capture) return remember(cudaErrorInvalidValue);
    if (is_external || (!stream.capture && !event->capture)) {
      give_made(handle, "cudaStreamWaitEvent", wait_of(event));
      return cudaSuccess;
    }
    if (!event->capture) return invalidate(*stream.capture, cudaErrorStreamCaptureIsolation);
    if (event->capture->is_invalid) return remember(cudaErrorStreamCaptureInvalidated);
    if (event->capture->is_over) {
      find_fault("cudaStreamWaitEvent of an event that was last recorded in a capture that is over");
      return stream.capture ? invalidate(*stream.capture, cudaErrorStreamCaptureIsolation)
                            : remember(cudaErrorCapturedEvent);
    }
    if (stream.capture && stream.capture != event->capture) {
      invalidate(*event->capture, cudaErrorStreamCaptureMerge);
      return invalidate(*stream.capture, cudaErrorStreamCaptureMerge);
    }
    stream.capture = event->capture;
    depend(stream.after, event->after);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return answer({"cudaEventQuery"}, kAfterFailure | kInCapture, [&] {
    const std::shared_ptr<Event> event = event_of(handle, "cudaEventQuery");
    if (!event) return remember(cudaErrorInvalidResourceHandle);
    if (const cudaError_t wrong = check_not_captured(*event, "cudaEventQuery")) return wrong;
    const std::shared_ptr<Record> record = event->last;
    if (record && !record->is_reached) do_some(1 + static_cast<int>(draw(4)));
    if (sticky_error() != cudaSuccess) return remember(sticky_error());
    return has_ended(record) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  count("cudaEventSynchronize");
  if (const cudaError_t unsafe = check_unsafe_call()) return unsafe;
  std::shared_ptr<Record> record;
  {
    const std::lock_guard hold(machine_lock());
    const std::shared_ptr<Event> event = event_of(handle, "cudaEventSynchronize");
    if (!event) return remember(cudaErrorInvalidResourceHandle);
    if (const cudaError_t wrong = check_not_captured(*event, "cudaEventSynchronize")) return wrong;
    record = event->last;
  }
  return wait_until([&] { return has_ended(record); });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
  const Call call("cudaEventElapsedTime");
  const std::shared_ptr<Event> begin = event_of(first, "cudaEventElapsedTime");
  const std::shared_ptr<Event> end = event_of(second, "cudaEventElapsedTime");
  if (!begin || !end) return remember(cudaErrorInvalidResourceHandle);
  for (const auto& event : {begin, end}) {
    if (const cudaError_t wrong = check_not_captured(*event, "cudaEventElapsedTime")) return wrong;
  }
  if (!begin->last || !end->last) return remember(cudaErrorInvalidResourceHandle);
  if (!begin->last->is_reached || !end->last->is_reached) {
    find_fault("cudaEventElapsedTime of events that have not been reached");
    return remember(cudaErrorNotReady);
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->last->time - begin->last->time).count();
  return cudaSuccess;
}

}  // extern "C"
