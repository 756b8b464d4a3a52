// Graphs: what streams were given while they captured, and how it is launched.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/software_gpu/work.h"

namespace software_gpu {

struct Node {
  std::string name;
  Make make;
  std::vector<std::size_t> after;  // nodes before it that must have ended
  std::size_t lane = 0;            // of the graph's: nodes that one stream was given
  const void* given_by = nullptr;  // where that call returned to
};

struct Graph {
  std::vector<Node> nodes;
  std::size_t lanes = 0;
};

// A capture that is under way. Streams that take part share it.
struct Capture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread = std::this_thread::get_id();
  unsigned long long number = 0;
  bool is_invalid = false, is_over = false;
  std::map<std::size_t, std::size_t> lanes;

  // The graph's lane for what a stream is given, by the stream's own.
  std::size_t lane_of(std::size_t lane_of_stream);
  // Whether all nodes are among these, or before one of them.
  bool is_joined(const std::vector<std::size_t>& nodes) const;
};

// Makes a capture invalid, and returns the error.
cudaError_t invalidate(Capture& capture, cudaError_t error);
void add_capture(const std::shared_ptr<Capture>& capture);
// Fails, and makes the captures invalid, if one is under way during which this thread may not make calls that CUDA
// names potentially unsafe: they may wait for the device, or change its memory.
cudaError_t check_unsafe_call();
// The same for calls that wait for the whole device, which no capture allows.
cudaError_t check_no_capture();

// Finds faults: graphs that were not destroyed.
void check_graphs_at_end();

}  // namespace software_gpu
