// One oneDNN operation made ready: the compiled primitive, its arguments and its scratchpad, all allocated once. Each
// call binds the arguments to the caller's memory and runs.
#pragma once

#include <dnnl.hpp>
#include <initializer_list>
#include <unordered_map>

namespace syncopate::worker {

// Holds oneDNN to the calling thread while it lives. oneDNN is built with OpenMP and would use all processors; what the
// caller has set for itself is put back.
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int before_;
};

// Attributes by which a primitive leaves its scratchpad to OneDnnPrimitive.
dnnl::primitive_attr with_own_scratchpad();

class OneDnnPrimitive {
 public:
  struct Argument {
    int id;  // as in DNNL_ARG_SRC
    dnnl::memory::desc desc;
  };

  // `descriptor` is any primitive descriptor made with with_own_scratchpad().
  template <typename Primitive, typename Descriptor>
  static OneDnnPrimitive make(const Descriptor& descriptor, const dnnl::engine& engine,
                              std::initializer_list<Argument> arguments) {
    return OneDnnPrimitive(Primitive(descriptor), descriptor.scratchpad_desc(), engine, arguments);
  }

  // The caller's memory for one argument: the layout and size of its descriptor, untouched until run() has returned.
  void bind(int id, const float* data) { arguments_.at(id).set_data_handle(const_cast<float*>(data)); }
  // Returns when the work is done. All arguments must be bound.
  void run(dnnl::stream& stream) {
    primitive_.execute(stream, arguments_);
    stream.wait();
  }

 private:
  OneDnnPrimitive(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad, const dnnl::engine& engine,
                  std::initializer_list<Argument> arguments);

  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace syncopate::worker
