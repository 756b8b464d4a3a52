// OwnedHandle: owns a handle that one of CUDA's libraries has created.
#pragma once

#include <memory>

namespace syncopate::worker {

template <auto kDestroy>
struct DestroyHandle {
  template <typename Opaque>
  void operator()(Opaque* handle) const {
    kDestroy(handle);
  }
};

// Use it as in OwnedHandle<cudnnTensorStruct, cudnnDestroyTensorDescriptor>.
template <typename Opaque, auto kDestroy>
using OwnedHandle = std::unique_ptr<Opaque, DestroyHandle<kDestroy>>;

}  // namespace syncopate::worker
