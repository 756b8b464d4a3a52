// ComputeBackend: the tensor operations that layers are written in, forward and backward. All tensors are dense. Those
// of one pass are of one type, element_type(): float32, or 16-bit numbers on a device, which computes with them in
// float32. What is declared as floats is float32 always. Images are (batch, height, width, channels), weights of a
// convolution (out, kernel height, kernel width, in), weights of a dense layer (out, in). No call allocates after the
// first one of its shape (a library below may still make short lists of its own). One thread per instance.
//
// If a backend computes on a device, all tensors lie in that device's memory, and operations are only enqueued, in
// order: they return before they are done, and a failure is kept for status(). On the CPU they are done on return.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "common/status.h"
#include "common/tensor_span.h"
#include "worker/backend/phase_timer.h"
#include "worker/backend/sequence_shapes.h"

namespace syncopate::worker {

struct DenseShape {
  int batch = 0, in = 0, out = 0;
  bool relu = false;  // forward ends with max(y, 0); a library may turn NaN into 0
  bool bias = true;   // false: no bias and no relu; b and db are empty
  bool operator==(const DenseShape&) const = default;
};

// Images are padded with `padding` zeros on each side.
struct ConvShape {
  int batch = 0, height = 0, width = 0, in = 0, out = 0, kernel = 0;
  int stride = 1, padding = 0;
  bool bias = true;  // without, b and db are empty
  int out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  int out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  bool operator==(const ConvShape&) const = default;
};

// Windows of size x size, `stride` apart, of which the first begins `padding` pixels, fewer than `size`, outside the
// image's corner. What lies outside is never the largest. Pixels behind the last window are ignored.
struct PoolShape {
  int batch = 0, height = 0, width = 0, channels = 0, size = 0, stride = 0, padding = 0;
  int out_height() const { return (height + 2 * padding - size + stride) / stride; }
  int out_width() const { return (width + 2 * padding - size + stride) / stride; }
  bool operator==(const PoolShape&) const = default;
};

// Each channel is normalised over all rows, that is, over all pixels of all images.
struct BatchNormShape {
  int rows = 0, channels = 0;
  bool relu = false;      // forward ends with max(y, 0)
  bool residual = false;  // forward adds a residual of y's size, before the relu
  bool operator==(const BatchNormShape&) const = default;
};

// The mean over the pixels of each image, channel by channel.
struct MeanPoolShape {
  int batch = 0, pixels = 0, channels = 0;
};

// Takes every stride-th pixel of every stride-th row, from the first on, with zeros for channels in .. out-1.
struct SubsampleShape {
  int batch = 0, height = 0, width = 0, in = 0, out = 0, stride = 1;
  int out_height() const { return (height - 1) / stride + 1; }
  int out_width() const { return (width - 1) / stride + 1; }
};

// A bias for each column of a matrix, such as each channel of all pixels.
struct BiasShape {
  int rows = 0, columns = 0;
  bool relu = false;  // forward ends with max(y, 0)
};

using In = ConstTensorSpan;
using Out = TensorSpan;
using ConstFloats = std::span<const float>;
using Floats = std::span<float>;

// Moments by channel.
struct BatchMoments {
  Floats mean;
  Floats inverse_deviation;  // 1 / sqrt(variance + kBatchNormEpsilon), with the biased variance
};
struct RunningMoments {
  Floats mean;
  Floats variance;
};
inline constexpr float kBatchNormEpsilon = 1e-5f;
inline constexpr float kBatchNormMomentum = 0.1f;  // weight of a batch in the running moments

struct LossAndCorrect {
  double loss = 0;  // mean over the batch, times its weight
  int correct = 0;  // samples whose largest logit is that of their label
};

class ComputeBackend {
 public:
  virtual ~ComputeBackend() = default;

  virtual const char* name() const = 0;

  // Returns zeroed memory for the operations, aligned to a cache line; it lives as long as the backend. If there is not
  // enough, returns an empty span and keeps the failure for status().
  virtual std::span<std::byte> allocate(std::size_t bytes) = 0;
  // Returns how many bytes have been asked of allocate(), and were there.
  virtual std::size_t allocated() const = 0;
  Floats allocate_floats(std::size_t count);
  Out allocate_tensor(std::size_t count);
  // The type of the tensors that layers compute with.
  virtual ElementType element_type() const { return ElementType::kFloat32; }
  // Copies from the host's memory to a tensor, rounded to its type. May wait.
  virtual void upload(ConstFloats host, Out tensor) = 0;
  // Returns a tensor in host memory once all operations so far are done; valid until the next call. May wait. On
  // failure returns an empty span and keeps the failure for status().
  virtual ConstFloats host_view(In tensor) = 0;

  // Waits until all operations so far are done; on the CPU they always are.
  virtual void finish() {}

  // The first failure of all calls so far.
  virtual Status status() const = 0;

  // y(B, out) = x(B, in) · wᵀ + b, and then max(y, 0) if the shape has relu.
  virtual void dense_forward(const DenseShape&, In x, In w, In b, Out y) = 0;
  // dw = dyᵀ·x, db = column sums of dy, dx = dy·w. dw and db are overwritten; an empty dx is not computed, and on the
  // CPU neither are empty dw and db. dy is the gradient before the shape's relu, so call relu_backward first.
  virtual void dense_backward(const DenseShape&, In x, In w, In dy, Out dw, Out db, Out dx) = 0;

  virtual void conv2d_forward(const ConvShape&, In x, In w, In b, Out y) = 0;
  virtual void conv2d_backward(const ConvShape&, In x, In w, In dy, Out dw, Out db, Out dx) = 0;

  // In place: y = max(y, 0); NaN stays.
  virtual void relu_forward(Out y) = 0;
  // In place: dy = 0 where y, the output of forward, is 0.
  virtual void relu_backward(In y, Out dy) = 0;

  // In place: y += b in each row, and then max(y, 0) if the shape has relu.
  virtual void bias_forward(const BiasShape&, In b, Out y) = 0;
  // db = column sums of dy, which becomes 0 where y is, in place, if the shape has relu.
  virtual void bias_backward(const BiasShape&, In y, Out dy, Out db) = 0;

  // y += x.
  virtual void add(In x, Out y) = 0;

  // y = x, rounded to y's type.
  virtual void convert(ConstFloats x, Out y) = 0;

  // `index` stores, by output, which element of the window was the largest (the first among equals), 0 .. size*size-1.
  virtual void max_pool_forward(const PoolShape&, In x, Out y, std::span<unsigned char> index) = 0;
  // A pixel has the sum over the windows that it won, in the order of the windows, in float.
  virtual void max_pool_backward(const PoolShape&, In dy, std::span<const unsigned char> index, Out dx) = 0;

  // Batch normalization (Ioffe & Szegedy 2015, algorithms 1 and 2): y = scale · (x - mean) · inverse_deviation + shift,
  // plus the residual if the shape has one, then max(y, 0) if it has relu. Without, `residual` is empty. Training uses
  // the moments of the batch, keeps them in `batch` for backward, and moves the running moments, whose variance is
  // unbiased, by kBatchNormMomentum towards them.
  virtual void batch_norm_forward(const BatchNormShape&, In x, In scale, In shift, const BatchMoments& batch,
                                  const RunningMoments& running, In residual, Out y) = 0;
  // Computes the gradients, also through the batch's moments. y is what forward has made, and dy its gradient, after
  // the shape's relu. If the shape has a residual and relu, dy becomes 0 where y is: it is the residual's gradient. y
  // is only read then, dy only then written. An empty dx is not computed.
  virtual void batch_norm_backward(const BatchNormShape&, In x, In scale, In shift, const BatchMoments& batch, In y,
                                   Out dy, Out dscale, Out dshift, Out dx) = 0;
  // Evaluation uses the running moments.
  virtual void batch_norm_inference(const BatchNormShape&, In x, In scale, In shift, const RunningMoments& running,
                                    In residual, Out y) = 0;

  virtual void mean_pool_forward(const MeanPoolShape&, In x, Out y) = 0;
  virtual void mean_pool_backward(const MeanPoolShape&, In dy, Out dx) = 0;

  virtual void subsample_forward(const SubsampleShape&, In x, Out y) = 0;
  virtual void subsample_backward(const SubsampleShape&, In dy, Out dx) = 0;

  // y(B, T, C)[b][t] = tokens(V, C)[ids(B, T)[b][t]] + positions(T, C)[t].
  virtual void embedding_forward(const EmbeddingShape&, std::span<const int> ids, In tokens, In positions, Out y) = 0;
  // Adds dy to dtokens, always in the same order, and overwrites dpositions.
  virtual void embedding_backward(const EmbeddingShape&, std::span<const int> ids, In dy, Out dtokens,
                                  Out dpositions) = 0;

  // y = (x - mean) / sqrt(variance + kLayerNormEpsilon) · gamma + beta, with each row's own mean and variance (Ba et
  // al. 2016, section 3). `moments` (rows, 2) stores its mean and 1 / sqrt(...).
  virtual void layer_norm_forward(const LayerNormShape&, In x, In gamma, In beta, Out y, Floats moments) = 0;
  // `residual` is the gradient of x by way of a residual connection past the norm, which is added to dx, or empty.
  virtual void layer_norm_backward(const LayerNormShape&, In x, In gamma, ConstFloats moments, In dy, In residual,
                                   Out dgamma, Out dbeta, Out dx) = 0;

  // y = x/2 · (1 + tanh(sqrt(2/pi) · (x + 0.044715 x³))) (Hendrycks and Gimpel 2016, section 2).
  virtual void gelu_forward(In x, Out y) = 0;
  virtual void gelu_backward(In x, In dy, Out dx) = 0;

  // Causal self-attention of several heads (Vaswani et al. 2017, section 3.2). qkv(B, T, 3, H, C/H) holds queries, keys
  // and values. For each head p = softmax over s <= t of q[t] · k[s] / sqrt(C/H), 0 beyond, and y(B, T, H, C/H)[t] =
  // the sum of p[t][s] v[s]. `storage` holds what the backend wants to keep for backward, which may overwrite it.
  virtual void attention_forward(const AttentionShape&, In qkv, Out y, Floats storage) = 0;
  virtual void attention_backward(const AttentionShape&, In qkv, In y, In dy, Floats storage, Out dqkv) = 0;
  // Returns the number of floats of `storage`.
  virtual std::size_t attention_storage(const AttentionShape&) const = 0;

  // Softmax and cross-entropy over `classes` logits per sample. Writes weight · d(mean loss)/d(logits) to dlogits
  // unless it is empty, and stores what loss() then returns: the mean too is times the weight. A sample with a label
  // below 0 adds nothing to the sum that the mean over the batch is of. On a device no label may be, and the weight
  // must be 1.
  virtual void softmax_cross_entropy(int batch, int classes, In logits, std::span<const int> labels, double weight,
                                     Out dlogits) = 0;
  // The squared error of one output a sample: stores (output - target)^2, times the weight, in the mean over the batch,
  // and writes its gradient unless `doutputs` is empty. Labels below 0, and devices, as above; nothing is correct.
  virtual void squared_error(In outputs, ConstFloats targets, std::span<const int> labels, double weight,
                             Out doutputs) = 0;
  // From now on both multiply the gradient by this number, where the backend computes; it is read each time. Only for
  // devices.
  virtual void scale_gradients_by(ConstFloats /*factor*/) {}
  // Returns the result of the last of these two that was enqueued in that turn (begin_turn). Waits for it.
  virtual LossAndCorrect loss(std::size_t turn) = 0;
  LossAndCorrect loss() { return loss(0); }

  // On a device several steps may be under way, which take turns (turn_of, sync_strategy.h): what is enqueued from now
  // on is of a step whose turn it is. Until then, and on the CPU always, it is turn 0.
  virtual void begin_turn(std::size_t /*turn*/) {}

  // Returns what times the phases of a step on the device; null on the CPU. It lives as long as the backend.
  virtual PhaseTimer* phase_timer() { return nullptr; }
};

inline Floats ComputeBackend::allocate_floats(std::size_t count) {
  const std::span<std::byte> memory = allocate(count * sizeof(float));
  return {reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)};
}

inline Out ComputeBackend::allocate_tensor(std::size_t count) {
  const std::span<std::byte> memory = allocate(count * size_of(element_type()));
  return {memory.data(), memory.size() / size_of(element_type()), element_type()};
}

// Plain loops; the oracle of the tests.
std::unique_ptr<ComputeBackend> make_reference_backend();
// To build models for what they say of themselves: what it allocates takes addresses and no memory; upload does
// nothing, and nothing else may read or write there. `stores_as_gpu`: layers ask for as much as on a GPU.
std::unique_ptr<ComputeBackend> make_address_backend(bool stores_as_gpu = false,
                                                     ElementType element = ElementType::kFloat32);
// oneDNN, on the calling thread only, whichever that is.
std::unique_ptr<ComputeBackend> make_onednn_backend();

}  // namespace syncopate::worker
