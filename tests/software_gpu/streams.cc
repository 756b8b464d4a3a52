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
#include "tests/software_gpu/settings.h"

namespace software_gpu {
namespace {

using Clock = std::chrono::steady_clock;

// What nobody waits for begins after so long.
constexpr std::chrono::milliseconds kAtLast{2};

struct Piece {
  std::string name;
  Work work;
  std::function<void()> of_host;  // instead
};

struct Stream {
  int device = 0;
  std::deque<Piece> pieces;
  bool is_busy = false;  // with a function of the host's
};

struct Event {
  std::uint64_t recorded = 0, reached = 0;  // how often
  Clock::time_point time;                   // when the last was reached
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
    return std::ranges::any_of(stream->pieces, [](const Piece& piece) { return piece.of_host != nullptr; });
  });
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

void add(cudaStream_t handle, Piece piece) {
  stream_of(handle)->pieces.push_back(std::move(piece));
  watch();
}

std::vector<std::shared_ptr<Stream>> ready_streams() {
  std::vector<std::shared_ptr<Stream>> ready;
  for (const auto& stream : streams().all) {
    if (!stream->is_busy && !stream->pieces.empty()) ready.push_back(stream);
  }
  if (settings().order == Order::kDrawn) std::ranges::shuffle(ready, dice());
  if (settings().order == Order::kLast) std::ranges::reverse(ready);
  return ready;
}

void begin_of_host(const std::shared_ptr<Stream>& stream) {
  stream->is_busy = true;
  std::thread([stream, function = stream->pieces.front().of_host] {
    function();
    const std::lock_guard hold(machine_lock());
    stream->pieces.pop_front();
    stream->is_busy = false;
  }).detach();
}

bool is_done(Piece& piece) {
  const OpenMemory open;
  running_now(piece.name.c_str());
  const bool is_done = sticky_error() != cudaSuccess || piece.work();
  running_now("code of the host");
  return is_done;
}

bool do_one() {
  for (const std::shared_ptr<Stream>& stream : ready_streams()) {
    if (stream->pieces.front().of_host) {
      begin_of_host(stream);
    } else {
      if (settings().fails_at != 0 && ++streams().pieces == settings().fails_at)
        fail_for_good(cudaErrorECCUncorrectable);
      if (!is_done(stream->pieces.front())) continue;
      stream->pieces.pop_front();
    }
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
  if (stream != nullptr && stream->device == device_of_thread()) return cudaSuccess;
  find_fault(stream == nullptr ? "work for a stream that is not there" : "work for a stream of another device");
  return remember(cudaErrorInvalidResourceHandle);
}

void give(cudaStream_t stream, std::string name, Work work) { add(stream, {std::move(name), std::move(work), {}}); }

void give_host_function(cudaStream_t stream, std::function<void()> function) {
  add(stream, {"a function of the host", {}, std::move(function)});
  given().notify_one();
}

cudaError_t create_stream(cudaStream_t* handle) {
  auto stream = std::make_shared<Stream>();
  stream->device = device_of_thread();
  *handle = reinterpret_cast<cudaStream_t>(stream.get());
  streams().all.push_back(stream);
  streams().handles.push_back(stream);
  streams().by_handle[*handle] = std::move(stream);
  return cudaSuccess;
}

cudaError_t destroy_stream(cudaStream_t handle) {
  if (streams().by_handle.erase(handle) > 0) return sticky_error();
  find_fault("cudaStreamDestroy of what is no stream");
  return remember(cudaErrorInvalidResourceHandle);
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

cudaError_t create_event(cudaEvent_t* handle) {
  auto event = std::make_shared<Event>();
  *handle = reinterpret_cast<cudaEvent_t>(event.get());
  streams().handles.push_back(event);
  streams().events[*handle] = std::move(event);
  return cudaSuccess;
}

cudaError_t destroy_event(cudaEvent_t handle) {
  if (streams().events.erase(handle) > 0) return sticky_error();
  find_fault("cudaEventDestroy of what is no event");
  return remember(cudaErrorInvalidResourceHandle);
}

cudaError_t record_event(cudaEvent_t handle, cudaStream_t stream) {
  const std::shared_ptr<Event> event = event_of(handle, "cudaEventRecord");
  if (!event) return remember(cudaErrorInvalidResourceHandle);
  if (const cudaError_t wrong = check_stream(stream)) return wrong;
  give(stream, "cudaEventRecord", [event, number = ++event->recorded] {
    event->reached = std::max(event->reached, number);
    event->time = Clock::now();
    return true;
  });
  return cudaSuccess;
}

cudaError_t wait_for_event(cudaStream_t stream, cudaEvent_t handle) {
  const std::shared_ptr<Event> event = event_of(handle, "cudaStreamWaitEvent");
  if (!event) return remember(cudaErrorInvalidResourceHandle);
  if (const cudaError_t wrong = check_stream(stream)) return wrong;
  give(stream, "cudaStreamWaitEvent", [event, number = event->recorded] { return event->reached >= number; });
  return cudaSuccess;
}

cudaError_t query_event(cudaEvent_t handle) {
  const std::shared_ptr<Event> event = event_of(handle, "cudaEventQuery");
  if (!event) return remember(cudaErrorInvalidResourceHandle);
  if (event->reached < event->recorded) do_some(1 + static_cast<int>(draw(4)));
  if (sticky_error() != cudaSuccess) return remember(sticky_error());
  return event->reached < event->recorded ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t time_between(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
  const std::shared_ptr<Event> begin = event_of(first, "cudaEventElapsedTime");
  const std::shared_ptr<Event> end = event_of(second, "cudaEventElapsedTime");
  if (!begin || !end || begin->recorded == 0 || end->recorded == 0) return remember(cudaErrorInvalidResourceHandle);
  if (begin->reached < begin->recorded || end->reached < end->recorded) {
    find_fault("cudaEventElapsedTime of events that have not been reached");
    return remember(cudaErrorNotReady);
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return cudaSuccess;
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
  }
  return wait_until([&] { return stream->pieces.empty(); });
}

cudaError_t wait_for_all() {
  return wait_until(
      [] { return std::ranges::all_of(streams().all, [](const auto& stream) { return stream->pieces.empty(); }); });
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
