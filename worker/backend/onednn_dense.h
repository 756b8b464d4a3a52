// A dense layer's three matrix products for one shape, compiled once. The weights are used in place, in the arena.
#pragma once

#include "worker/backend/compute_backend.h"
#include "worker/backend/onednn_primitive.h"

namespace syncopate::worker {

class OneDnnDense {
 public:
  OneDnnDense(const DenseShape& shape, const dnnl::engine& engine);

  const DenseShape& shape() const { return shape_; }

  // As in ComputeBackend, except that backward does not compute db.
  void forward(dnnl::stream& stream, In x, In w, In b, Out y);
  void backward(dnnl::stream& stream, In x, In w, In dy, Out dw, Out dx);

 private:
  DenseShape shape_;
  OneDnnPrimitive forward_;
  OneDnnPrimitive backward_weights_;
  OneDnnPrimitive backward_data_;
};

}  // namespace syncopate::worker
