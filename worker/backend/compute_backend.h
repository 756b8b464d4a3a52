// ComputeBackend: the tensor operations that layers are written in, forward and backward. All tensors are dense
// float32; images are (batch, height, width, channels), weights of a convolution (out, kernel height, kernel width,
// in), of a dense layer (out, in). No call allocates after the first one of its shape (a library below may still make
// short lists of its own). One thread an instance.
//
// Where a backend computes on a device, all tensors lie in that device's memory, and operations are only given to it,
// in order: they return before they are done, and a failure is kept for status(). On the CPU they are done on return.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "common/clock.h"
#include "common/status.h"
#include "worker/backend/sequence_shapes.h"

namespace syncopate::worker {

struct DenseShape {
  int batch = 0, in = 0, out = 0;
  bool relu = false;  // forward ends with max(y, 0), where a library may turn what is no number into 0
  bool bias = true;   // else there is none, nor a relu; b and db are empty
  bool operator==(const DenseShape&) const = default;
};

// Zeros stand around the images, `padding` on each side.
struct ConvShape {
  int batch = 0, height = 0, width = 0, in = 0, out = 0, kernel = 0;
  int stride = 1, padding = 0;
  bool bias = true;  // without, b and db are empty
  int out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  int out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  bool operator==(const ConvShape&) const = default;
};

// Windows of size x size, stride `size`; a rest at the border is not read.
struct PoolShape {
  int batch = 0, height = 0, width = 0, channels = 0, size = 0;
  int out_height() const { return height / size; }
  int out_width() const { return width / size; }
  bool operator==(const PoolShape&) const = default;
};

// Each channel is normalised over all rows: all pixels of all images.
struct BatchNormShape {
  int rows = 0, channels = 0;
  bool relu = false;  // forward ends with max(y, 0)
  bool operator==(const BatchNormShape&) const = default;
};

// The mean over the pixels of each image, channel by channel.
struct MeanPoolShape {
  int batch = 0, pixels = 0, channels = 0;
};

// Every stride-th pixel of every stride-th row, from the first on, with zeros for channels in .. out-1.
struct SubsampleShape {
  int batch = 0, height = 0, width = 0, in = 0, out = 0, stride = 1;
  int out_height() const { return (height - 1) / stride + 1; }
  int out_width() const { return (width - 1) / stride + 1; }
};

using In = std::span<const float>;
using Out = std::span<float>;

// Of each channel.
struct BatchMoments {
  Out mean;
  Out inverse_deviation;  // 1 / sqrt(variance + kBatchNormEpsilon), of the biased variance
};
struct RunningMoments {
  Out mean;
  Out variance;
};
inline constexpr float kBatchNormEpsilon = 1e-5f;
inline constexpr float kBatchNormMomentum = 0.1f;  // what a batch counts for in the running moments

struct LossAndCorrect {
  double loss = 0;  // mean over the batch
  int correct = 0;  // samples whose largest logit is their label's
};

// What a device's clock says of one step.
struct DeviceTimes {
  Duration forward{};
  Duration backward{};
};

class ComputeBackend {
 public:
  virtual ~ComputeBackend() = default;

  virtual const char* name() const = 0;

  // Zeroed memory that the operations work on, aligned to a cache line; lives as long as the backend. Empty, and kept
  // for status(), where there is not so much.
  virtual std::span<std::byte> allocate(std::size_t bytes) = 0;
  Out allocate_floats(std::size_t count);
  // From the host's memory into tensors' memory. May wait.
  virtual void upload(In host, Out tensor) = 0;
  // A tensor as the host can read it, once all operations so far are done; valid until the next call. May wait. Empty,
  // and kept for status(), where that failed.
  virtual In host_view(In tensor) = 0;

  // Waits until all operations so far are done; on the CPU they are.
  virtual void finish() {}

  // The first failure of all calls so far.
  virtual Status status() const = 0;

  // y(B, out) = x(B, in) · wᵀ + b, and max(y, 0) where the shape says so.
  virtual void dense_forward(const DenseShape&, In x, In w, In b, Out y) = 0;
  // dw = dyᵀ·x, db = column sums of dy, dx = dy·w. dw and db are overwritten; an empty dx is not computed. dy is the
  // gradient before the shape's relu: relu_backward comes first.
  virtual void dense_backward(const DenseShape&, In x, In w, In dy, Out dw, Out db, Out dx) = 0;

  virtual void conv2d_forward(const ConvShape&, In x, In w, In b, Out y) = 0;
  virtual void conv2d_backward(const ConvShape&, In x, In w, In dy, Out dw, Out db, Out dx) = 0;

  // In place: y = max(y, 0); what is no number stays.
  virtual void relu_forward(Out y) = 0;
  // In place: dy = 0 where y, the forward's result, is 0.
  virtual void relu_backward(In y, Out dy) = 0;

  // y += x.
  virtual void add(In x, Out y) = 0;

  // `index` remembers, by output, which element of the window won (the first of equals), 0 .. size*size-1.
  virtual void max_pool_forward(const PoolShape&, In x, Out y, std::span<unsigned char> index) = 0;
  virtual void max_pool_backward(const PoolShape&, In dy, std::span<const unsigned char> index, Out dx) = 0;

  // Batch normalization (Ioffe & Szegedy 2015, algorithms 1 and 2): y = scale · (x - mean) · inverse_deviation + shift,
  // then max(y, 0) where the shape says so. Training takes the moments of the batch, keeps them in `batch` for
  // backward, and moves the running ones, whose variance is unbiased, by kBatchNormMomentum towards them.
  virtual void batch_norm_forward(const BatchNormShape&, In x, In scale, In shift, const BatchMoments& batch,
                                  const RunningMoments& running, Out y) = 0;
  // The gradients through the batch's moments as well; dy is that of y, after the shape's relu. An empty dx is not
  // computed.
  virtual void batch_norm_backward(const BatchNormShape&, In x, In scale, In shift, const BatchMoments& batch, In dy,
                                   Out dscale, Out dshift, Out dx) = 0;
  // Evaluation takes the running moments.
  virtual void batch_norm_inference(const BatchNormShape&, In x, In scale, In shift, const RunningMoments& running,
                                    Out y) = 0;

  virtual void mean_pool_forward(const MeanPoolShape&, In x, Out y) = 0;
  virtual void mean_pool_backward(const MeanPoolShape&, In dy, Out dx) = 0;

  virtual void subsample_forward(const SubsampleShape&, In x, Out y) = 0;
  virtual void subsample_backward(const SubsampleShape&, In dy, Out dx) = 0;

  // y(B, T, C)[b][t] = tokens(V, C)[ids(B, T)[b][t]] + positions(T, C)[t].
  virtual void embedding_forward(const EmbeddingShape&, std::span<const int> ids, In tokens, In positions, Out y) = 0;
  // Adds dy to dtokens, always in the same order; dpositions is overwritten.
  virtual void embedding_backward(const EmbeddingShape&, std::span<const int> ids, In dy, Out dtokens,
                                  Out dpositions) = 0;

  // y = (x - mean) / sqrt(variance + kLayerNormEpsilon) · gamma + beta, with each row's own mean and variance (Ba et
  // al. 2016, section 3). `moments` (rows, 2) remembers its mean and 1 / sqrt(...).
  virtual void layer_norm_forward(const LayerNormShape&, In x, In gamma, In beta, Out y, Out moments) = 0;
  virtual void layer_norm_backward(const LayerNormShape&, In x, In gamma, In moments, In dy, Out dgamma, Out dbeta,
                                   Out dx) = 0;

  // y = x/2 · (1 + tanh(sqrt(2/pi) · (x + 0.044715 x³))) (Hendrycks and Gimpel 2016, section 2).
  virtual void gelu_forward(In x, Out y) = 0;
  virtual void gelu_backward(In x, In dy, Out dx) = 0;

  // Causal self-attention of several heads (Vaswani et al. 2017, section 3.2). qkv(B, T, 3, H, C/H) holds queries, keys
  // and values; of each head p = softmax over s <= t of q[t] · k[s] / sqrt(C/H), 0 beyond, and y(B, T, H, C/H)[t] = the
  // sum of p[t][s] v[s]. `probabilities` (B, H, T, T) remembers p; backward overwrites them.
  virtual void attention_forward(const AttentionShape&, In qkv, Out y, Out probabilities) = 0;
  virtual void attention_backward(const AttentionShape&, In qkv, In dy, Out probabilities, Out dqkv) = 0;

  // Softmax and cross-entropy over `classes` logits a sample. Writes d(mean loss)/d(logits) to dlogits unless it is
  // empty, and what loss() then returns.
  virtual void softmax_cross_entropy(int batch, int classes, In logits, std::span<const int> labels, Out dlogits) = 0;
  // Of the last softmax_cross_entropy. Waits for it.
  virtual LossAndCorrect loss() = 0;

  // A step's phases begin here; a device takes the time of each.
  enum class Phase { kForward, kBackward, kSynchronise };
  virtual void begin_phase(Phase) {}
  // Of the step whose three phases were begun last, once it is done; nothing on the CPU, where the caller's clock says.
  virtual std::optional<DeviceTimes> device_times() { return std::nullopt; }
};

inline Out ComputeBackend::allocate_floats(std::size_t count) {
  const std::span<std::byte> memory = allocate(count * sizeof(float));
  return {reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)};
}

// Plain loops, the oracle of the tests.
std::unique_ptr<ComputeBackend> make_reference_backend();
// oneDNN on the calling thread alone, whichever that is.
std::unique_ptr<ComputeBackend> make_onednn_backend();

}  // namespace syncopate::worker
