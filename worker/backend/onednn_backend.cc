#include <memory>
#include <vector>

#include "worker/backend/batch_norm_ops.h"
#include "worker/backend/host_backend.h"
#include "worker/backend/onednn_attention.h"
#include "worker/backend/onednn_conv.h"
#include "worker/backend/onednn_dense.h"
#include "worker/backend/sequence_ops.h"
#include "worker/backend/vector_ops.h"

namespace syncopate::worker {
namespace {

class OneDnnBackend final : public HostBackend {
 public:
  const char* name() const override { return "onednn"; }

  void dense_forward(const DenseShape& shape, In x, In w, In b, Out y) override {
    const SingleThread single;
    prepared(denses_, shape).forward(stream_, x, w, b, y);
  }
  void dense_backward(const DenseShape& shape, In x, In w, In dy, Out dw, Out db, Out dx) override {
    const SingleThread single;
    if (!db.empty()) column_sums(dy, db);
    prepared(denses_, shape).backward(stream_, x, w, dy, dw, dx);
  }

  void conv2d_forward(const ConvShape& shape, In x, In w, In b, Out y) override {
    const SingleThread single;
    prepared(convs_, shape).forward(stream_, x, w, b, y);
  }
  void conv2d_backward(const ConvShape& shape, In x, In w, In dy, Out dw, Out db, Out dx) override {
    const SingleThread single;
    prepared(convs_, shape).backward(stream_, x, w, dy, dw, db, dx);
  }

  void relu_forward(Out y) override { worker::relu_forward(y); }
  void relu_backward(In y, Out dy) override { worker::relu_backward(y, dy); }
  void bias_forward(const BiasShape& shape, In b, Out y) override { worker::bias_forward(shape, b, y); }
  void bias_backward(const BiasShape& shape, In y, Out dy, Out db) override {
    if (shape.relu) worker::relu_backward(y, dy);
    column_sums(dy, db);
  }
  void add(In x, Out y) override { worker::add(x, y); }

  void max_pool_forward(const PoolShape& shape, In x, Out y, std::span<unsigned char> index) override {
    worker::max_pool_forward(shape, x, y, index);
  }
  void max_pool_backward(const PoolShape& shape, In dy, std::span<const unsigned char> index, Out dx) override {
    worker::max_pool_backward(shape, dy, index, dx);
  }

  void batch_norm_forward(const BatchNormShape& shape, In x, In scale, In shift, const BatchMoments& batch,
                          const RunningMoments& running, In residual, Out y) override {
    worker::batch_norm_forward(shape, x, scale, shift, batch, running, residual, y);
  }
  void batch_norm_backward(const BatchNormShape& shape, In x, In scale, In shift, const BatchMoments& batch, In y,
                           Out dy, Out dscale, Out dshift, Out dx) override {
    worker::batch_norm_backward(shape, x, scale, shift, batch, y, dy, dscale, dshift, dx);
  }
  void batch_norm_inference(const BatchNormShape& shape, In x, In scale, In shift, const RunningMoments& running,
                            In residual, Out y) override {
    worker::batch_norm_inference(shape, x, scale, shift, running, residual, y);
  }

  void mean_pool_forward(const MeanPoolShape& shape, In x, Out y) override { worker::mean_pool_forward(shape, x, y); }
  void mean_pool_backward(const MeanPoolShape& shape, In dy, Out dx) override {
    worker::mean_pool_backward(shape, dy, dx);
  }
  void subsample_forward(const SubsampleShape& shape, In x, Out y) override { worker::subsample_forward(shape, x, y); }
  void subsample_backward(const SubsampleShape& shape, In dy, Out dx) override {
    worker::subsample_backward(shape, dy, dx);
  }

  void embedding_forward(const EmbeddingShape& shape, std::span<const int> ids, In tokens, In positions,
                         Out y) override {
    worker::embedding_forward(shape, ids, tokens, positions, y);
  }
  void embedding_backward(const EmbeddingShape& shape, std::span<const int> ids, In dy, Out dtokens,
                          Out dpositions) override {
    worker::embedding_backward(shape, ids, dy, dtokens, dpositions);
  }
  void layer_norm_forward(const LayerNormShape& shape, In x, In gamma, In beta, Out y, Floats moments) override {
    worker::layer_norm_forward(shape, x, gamma, beta, y, moments);
  }
  void layer_norm_backward(const LayerNormShape& shape, In x, In gamma, ConstFloats moments, In dy, In residual,
                           Out dgamma, Out dbeta, Out dx) override {
    worker::layer_norm_backward(shape, x, gamma, moments, dy, residual, dgamma, dbeta, dx);
  }
  void gelu_forward(In x, Out y) override { worker::gelu_forward(x, y); }
  void gelu_backward(In x, In dy, Out dx) override { worker::gelu_backward(x, dy, dx); }
  void attention_forward(const AttentionShape& shape, In qkv, Out y, Floats probabilities) override {
    const SingleThread single;
    prepared(attentions_, shape).forward(qkv, y, probabilities);
  }
  void attention_backward(const AttentionShape& shape, In qkv, In /*y*/, In dy, Floats probabilities,
                          Out dqkv) override {
    const SingleThread single;
    prepared(attentions_, shape).backward(qkv, dy, probabilities, dqkv);
  }

  void softmax_cross_entropy(int batch, int classes, In logits, std::span<const int> labels, double weight,
                             Out dlogits) override {
    loss_ = worker::softmax_cross_entropy(batch, classes, logits, labels, weight, dlogits);
  }

 private:
  // The operation of this shape, compiled at its first use. A model has few shapes: a search beats a hash.
  template <typename Operation, typename Shape>
  Operation& prepared(std::vector<std::unique_ptr<Operation>>& operations, const Shape& shape) {
    for (const auto& operation : operations) {
      if (operation->shape() == shape) return *operation;
    }
    operations.push_back(std::make_unique<Operation>(shape, engine_));
    return *operations.back();
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<std::unique_ptr<OneDnnDense>> denses_;
  std::vector<std::unique_ptr<OneDnnConv>> convs_;
  std::vector<std::unique_ptr<OneDnnAttention>> attentions_;
};

}  // namespace

std::unique_ptr<ComputeBackend> make_onednn_backend() { return std::make_unique<OneDnnBackend>(); }

}  // namespace syncopate::worker
