// ComputeBackend: the tensor operations that layers are written in, forward and backward. All tensors are dense
// float32; images are (batch, height, width, channels), weights of a convolution (out, kernel height, kernel width,
// in), of a dense layer (out, in). Callers own all memory. No call allocates after the first one of its shape (a
// library below may still make short lists of its own). One thread an instance.
#pragma once

#include <memory>
#include <span>

namespace syncopate::worker {

struct DenseShape {
  int batch = 0, in = 0, out = 0;
  bool operator==(const DenseShape&) const = default;
};

// Stride 1, no padding ("valid"): out_height = height - kernel + 1.
struct ConvShape {
  int batch = 0, height = 0, width = 0, in = 0, out = 0, kernel = 0;
  int out_height() const { return height - kernel + 1; }
  int out_width() const { return width - kernel + 1; }
  bool operator==(const ConvShape&) const = default;
};

// Windows of size x size, stride `size`; a rest at the border is not read.
struct PoolShape {
  int batch = 0, height = 0, width = 0, channels = 0, size = 0;
  int out_height() const { return height / size; }
  int out_width() const { return width / size; }
  bool operator==(const PoolShape&) const = default;
};

using In = std::span<const float>;
using Out = std::span<float>;

class ComputeBackend {
 public:
  virtual ~ComputeBackend() = default;

  virtual const char* name() const = 0;

  // y(B, out) = x(B, in) · wᵀ + b
  virtual void dense_forward(const DenseShape&, In x, In w, In b, Out y) = 0;
  // dw = dyᵀ·x, db = column sums of dy, dx = dy·w. dw and db are overwritten; an empty dx is not computed.
  virtual void dense_backward(const DenseShape&, In x, In w, In dy, Out dw, Out db, Out dx) = 0;

  virtual void conv2d_forward(const ConvShape&, In x, In w, In b, Out y) = 0;
  virtual void conv2d_backward(const ConvShape&, In x, In w, In dy, Out dw, Out db, Out dx) = 0;

  // In place: y = max(y, 0).
  virtual void relu_forward(Out y) = 0;
  // In place: dy = 0 where y, the forward's result, is 0.
  virtual void relu_backward(In y, Out dy) = 0;

  // `index` remembers, by output, which element of the window won (the first of equals), 0 .. size*size-1.
  virtual void max_pool_forward(const PoolShape&, In x, Out y, std::span<unsigned char> index) = 0;
  virtual void max_pool_backward(const PoolShape&, In dy, std::span<const unsigned char> index, Out dx) = 0;

  // Softmax and cross-entropy over `classes` logits a sample. Writes d(mean loss)/d(logits) to dlogits unless it is
  // empty; returns the mean loss. `correct`, unless null, receives the number of samples whose largest logit is their
  // label's.
  virtual double softmax_cross_entropy(int batch, int classes, In logits, std::span<const int> labels, Out dlogits,
                                       int* correct) = 0;
};

// Plain loops, the oracle of the tests.
std::unique_ptr<ComputeBackend> make_reference_backend();
// oneDNN on the calling thread alone, whichever that is.
std::unique_ptr<ComputeBackend> make_onednn_backend();

}  // namespace syncopate::worker
