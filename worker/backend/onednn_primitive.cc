#include "worker/backend/onednn_primitive.h"

#include <omp.h>

#include <utility>

namespace syncopate::worker {

SingleThread::SingleThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
SingleThread::~SingleThread() { omp_set_num_threads(before_); }

dnnl::primitive_attr with_own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

OneDnnPrimitive::OneDnnPrimitive(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
                                 const dnnl::engine& engine, std::initializer_list<Argument> arguments)
    : primitive_(std::move(primitive)) {
  for (const Argument& argument : arguments) {
    arguments_.emplace(argument.id, dnnl::memory(argument.desc, engine, DNNL_MEMORY_NONE));
  }
  arguments_.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(scratchpad, engine));
}

}  // namespace syncopate::worker
