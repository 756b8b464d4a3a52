// A convolution for one shape, compiled once. Images stay (batch, height, width, channels). oneDNN wants the weights in
// a layout of its own: they are reordered on the way in, and their gradient on the way out.
#pragma once

#include "worker/backend/compute_backend.h"
#include "worker/backend/onednn_primitive.h"

namespace syncopate::worker {

class OneDnnConv {
 public:
  OneDnnConv(const ConvShape& shape, const dnnl::engine& engine);

  const ConvShape& shape() const { return shape_; }

  // As in ComputeBackend.
  void forward(dnnl::stream& stream, In x, In w, In b, Out y);
  void backward(dnnl::stream& stream, In x, In w, In dy, Out dw, Out db, Out dx);

 private:
  // One convolution primitive, with its weights (or their gradient) in the layout that it wants.
  struct Operation {
    OneDnnPrimitive primitive;
    dnnl::memory weights;
    OneDnnPrimitive reorder;  // forward, backward data: from the arena; backward weights: to the arena
  };
  struct Descriptors;

  OneDnnConv(const ConvShape& shape, const dnnl::engine& engine, const Descriptors& descriptors);

  ConvShape shape_;
  Operation forward_;
  Operation backward_weights_;
  Operation backward_data_;
};

}  // namespace syncopate::worker
