// OneDnnPrimitive: one prepared oneDNN operation: the compiled primitive, its arguments and its scratchpad, all
// allocated once. Each call binds the arguments to the caller's memory and runs.
#pragma once

#include <dnnl.hpp>
#include <initializer_list>
#include <unordered_map>

namespace syncopate::worker {

// Restricts oneDNN to the calling thread while this object lives. oneDNN is built with OpenMP and would use all
// processors. The destructor restores the caller's own setting.
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int before_;
};

// Returns attributes by which a primitive leaves its scratchpad to OneDnnPrimitive.
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

  // Binds the caller's memory to one argument. It must have the layout and size of the argument's descriptor, and must
  // not be touched until run() has returned.
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
