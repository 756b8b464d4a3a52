#include "tests/software_gpu/graphs.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/order.h"
#include "tests/software_gpu/runtime_call.h"
#include "tests/software_gpu/streams.h"

namespace software_gpu {
namespace {

// A launch of a graph.
class Execution {
 public:
  Execution(std::shared_ptr<const Graph> graph, std::size_t lane, std::shared_ptr<const Execution> before)
      : graph_(std::move(graph)),
        lane_(lane),
        before_(std::move(before)),
        begun_(graph_->nodes.size()),
        waits_for_(graph_->nodes.size()),
        followers_(graph_->nodes.size()),
        left_(graph_->nodes.size()) {
    for (std::size_t i = 0; i < graph_->nodes.size(); ++i) {
      const Node& node = graph_->nodes[i];
      works_.push_back(node.make());
      waits_for_[i] = node.after.size();
      for (const std::size_t before_it : node.after) followers_[before_it].push_back(i);
      if (node.after.empty()) ready_.push_back(i);
    }
  }

  // Goes on with one node: none is done before those that it depends on, and none beside an earlier launch.
  Progress go_on() {
    if (before_ && before_->left_ > 0) return Progress::kWaits;
    Knowledge& knowledge = Running::now()->knowledge();
    if (before_) knowledge.join(before_->end_);
    before_.reset();
    std::ranges::sort(ready_);
    arrange(ready_);
    for (std::size_t i = 0; i < ready_.size(); ++i) {
      const Progress progress = go_on(ready_[i], knowledge);
      if (progress == Progress::kMoved) return progress;
      if (progress == Progress::kWaits) continue;
      end(i);
      return left_ == 0 ? end(knowledge) : Progress::kMoved;
    }
    return left_ == 0 ? end(knowledge) : Progress::kWaits;
  }

 private:
  struct Begun {
    Knowledge knowledge;
    std::uint32_t number = 0;  // 0: has not
  };

  Progress go_on(std::size_t i, const Knowledge& before) {
    const Node& node = graph_->nodes[i];
    Begun& begun = begun_[i];
    if (begun.number == 0) {
      begun.knowledge = before;
      for (const std::size_t each : node.after) begun.knowledge.join(begun_[each].knowledge);
      begun.number = begun.knowledge.add(lane_ + node.lane);
    }
    const Running running(node.name, node.given_by, lane_ + node.lane, begun.number, begun.knowledge);
    return works_[i]();
  }

  Progress end(Knowledge& knowledge) {
    for (const Begun& node : begun_) knowledge.join(node.knowledge);
    end_ = knowledge;
    return Progress::kDone;
  }

  void end(std::size_t place) {
    const std::size_t node = ready_[place];
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(place));
    for (const std::size_t follower : followers_[node]) {
      if (--waits_for_[follower] == 0) ready_.push_back(follower);
    }
    --left_;
  }

  std::shared_ptr<const Graph> graph_;
  const std::size_t lane_;  // the first of the graph's
  std::shared_ptr<const Execution> before_;
  std::vector<Begun> begun_;
  Knowledge end_;  // when all is done
  std::vector<Work> works_;
  std::vector<std::size_t> waits_for_;  // how many nodes
  std::vector<std::vector<std::size_t>> followers_;
  std::vector<std::size_t> ready_;
  std::size_t left_;
};

struct Executable {
  std::shared_ptr<const Graph> graph;
  std::size_t lane = 0;                   // the first of its own
  std::shared_ptr<const Execution> last;  // launch
};

struct Graphs {
  std::map<cudaGraph_t, std::shared_ptr<const Graph>> graphs;
  std::map<cudaGraphExec_t, Executable> executables;
  std::vector<std::weak_ptr<Capture>> captures;
  std::uintptr_t made = 0;  // handles: none is given twice
};

Graphs& graphs() {
  static auto* const made = new Graphs;
  return *made;
}

thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

std::vector<std::shared_ptr<Capture>> captures_under_way() {
  std::erase_if(graphs().captures, [](const auto& capture) { return capture.expired() || capture.lock()->is_over; });
  std::vector<std::shared_ptr<Capture>> captures;
  for (const auto& capture : graphs().captures) captures.push_back(capture.lock());
  return captures;
}

bool forbids_unsafe_calls(const Capture& capture) {
  if (mode_of_thread == cudaStreamCaptureModeRelaxed || capture.mode == cudaStreamCaptureModeRelaxed) return false;
  return capture.thread == std::this_thread::get_id() ||
         (capture.mode == cudaStreamCaptureModeGlobal && mode_of_thread == cudaStreamCaptureModeGlobal);
}

template <typename Handle>
Handle new_handle() {
  return reinterpret_cast<Handle>(++graphs().made);
}

Executable* executable_of(cudaGraphExec_t handle, const char* call) {
  const auto found = graphs().executables.find(handle);
  if (found != graphs().executables.end()) return &found->second;
  find_fault(std::string(call) + " of what is no executable graph");
  return nullptr;
}

}  // namespace

std::size_t Capture::lane_of(std::size_t lane_of_stream) {
  const auto [place, is_new] = lanes.try_emplace(lane_of_stream, graph->lanes);
  if (is_new) ++graph->lanes;
  return place->second;
}

bool Capture::is_joined(const std::vector<std::size_t>& last) const {
  std::vector<bool> is_before(graph->nodes.size());
  for (const std::size_t node : last) is_before[node] = true;
  // Nodes come after those that they depend on.
  for (std::size_t i = graph->nodes.size(); i-- > 0;) {
    if (!is_before[i]) return false;
    for (const std::size_t node : graph->nodes[i].after) is_before[node] = true;
  }
  return true;
}

cudaError_t invalidate(Capture& capture, cudaError_t error) {
  capture.is_invalid = true;
  return remember(error);
}

void add_capture(const std::shared_ptr<Capture>& capture) {
  static unsigned long long made = 0;
  capture->number = ++made;
  graphs().captures.push_back(capture);
}

cudaError_t check_unsafe_call() {
  const std::lock_guard hold(machine_lock());
  cudaError_t result = cudaSuccess;
  for (const auto& capture : captures_under_way()) {
    if (forbids_unsafe_calls(*capture)) result = invalidate(*capture, cudaErrorStreamCaptureUnsupported);
  }
  return result;
}

cudaError_t check_no_capture() {
  const std::lock_guard hold(machine_lock());
  cudaError_t result = cudaSuccess;
  for (const auto& capture : captures_under_way()) result = invalidate(*capture, cudaErrorStreamCaptureUnsupported);
  return result;
}

void check_graphs_at_end() {
  if (const std::size_t left = graphs().graphs.size(); left > 0)
    find_fault("leak: " + std::to_string(left) + " graphs");
  if (const std::size_t left = graphs().executables.size(); left > 0) {
    find_fault("leak: " + std::to_string(left) + " executable graphs");
  }
}

}  // namespace software_gpu

using namespace software_gpu;

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, mode_of_thread);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return answer({"cudaStreamBeginCapture"}, kAfterFailure, [&] { return begin_capture(stream, mode); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Call call("cudaStreamEndCapture");
  *graph = nullptr;
  std::shared_ptr<const Graph> made;
  if (const cudaError_t wrong = end_capture(stream, made)) return wrong;
  *graph = new_handle<cudaGraph_t>();
  graphs().graphs[*graph] = std::move(made);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Call call("cudaStreamIsCapturing");
  const std::shared_ptr<Capture> capture = capture_of(stream);
  *status = !capture              ? cudaStreamCaptureStatusNone
            : capture->is_invalid ? cudaStreamCaptureStatusInvalidated
                                  : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

#if CUDART_VERSION >= 13000
// The graph and its nodes are not shown: what changes a graph by hand is not modelled.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* number,
                                     cudaGraph_t* graph, const cudaGraphNode_t** after, const cudaGraphEdgeData** edges,
                                     size_t* count_after) {
  if (graph != nullptr || after != nullptr || edges != nullptr || count_after != nullptr) {
    find_fault("cudaStreamGetCaptureInfo of more than status and number: not modelled");
  }
  const cudaError_t result = cudaStreamIsCapturing(stream, status);
  if (number != nullptr && *status == cudaStreamCaptureStatusActive) *number = capture_of(stream)->number;
  return result;
}
#endif

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return answer({"cudaGraphInstantiate"}, kAfterFailure, [&] {
    const auto found = graphs().graphs.find(graph);
    if (found == graphs().graphs.end()) {
      find_fault("cudaGraphInstantiate of what is no graph");
      return remember(cudaErrorInvalidValue);
    }
    constexpr unsigned long long kKnown =
        cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUseNodePriority;
    if ((flags & ~kKnown) != 0) find_fault("cudaGraphInstantiate with flags that are not modelled");
    *executable = new_handle<cudaGraphExec_t>();
    graphs().executables[*executable] = {
        .graph = found->second, .lane = new_lanes(found->second->lanes), .last = nullptr};
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream) {
  return answer({"cudaGraphUpload"}, kAfterFailure, [&] {
    if (executable_of(handle, "cudaGraphUpload") == nullptr) return remember(cudaErrorInvalidValue);
    if (const cudaError_t wrong = check_stream(stream)) return wrong;
    give(stream, "cudaGraphUpload", [] {});
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream) {
  return answer({"cudaGraphLaunch"}, kAfterFailure, [&] {
    Executable* const executable = executable_of(handle, "cudaGraphLaunch");
    if (executable == nullptr) return remember(cudaErrorInvalidValue);
    if (const cudaError_t wrong = check_stream(stream)) return wrong;
    if (const std::shared_ptr<Capture> capture = capture_of(stream)) {
      find_fault("cudaGraphLaunch on a stream that captures: not modelled");
      return invalidate(*capture, cudaErrorStreamCaptureUnsupported);
    }
    for (std::size_t i = 0; i < executable->graph->nodes.size(); ++i) count("cudaGraphLaunch.nodes");
    const auto execution =
        std::make_shared<Execution>(executable->graph, executable->lane, std::move(executable->last));
    executable->last = execution;
    give_made(stream, "cudaGraphLaunch", [execution]() -> Work { return [execution] { return execution->go_on(); }; });
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Call call("cudaGraphExecDestroy");
  if (executable_of(executable, "cudaGraphExecDestroy") == nullptr) return remember(cudaErrorInvalidValue);
  graphs().executables.erase(executable);
  return sticky_error();
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Call call("cudaGraphDestroy");
  if (graphs().graphs.erase(graph) > 0) return sticky_error();
  find_fault("cudaGraphDestroy of what is no graph");
  return remember(cudaErrorInvalidValue);
}

}  // extern "C"
