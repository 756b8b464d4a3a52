#include "worker/backend/counting_backend.h"

#include <fmt/format.h>

#include <utility>

namespace syncopate::worker {
namespace {

template <typename... Tensors>
double bytes_of(const Tensors&... tensors) {
  return (0.0 + ... + static_cast<double>(tensors.size_bytes()));
}

std::string shape_text(const DenseShape& s) { return fmt::format("{} x {} -> {}", s.batch, s.in, s.out); }

std::string shape_text(const ConvShape& s) {
  return fmt::format("{0}x{0}, {1}x{2}x{3} -> {4}x{5}x{6}", s.kernel, s.height, s.width, s.in, s.out_height(),
                     s.out_width(), s.out);
}

std::string shape_text(const PoolShape& s) {
  return fmt::format("{0}x{0}, {1}x{2}x{3}", s.size, s.height, s.width, s.channels);
}

std::string shape_text(const SubsampleShape& s) {
  return fmt::format("{}x{}x{} -> {}x{}x{}", s.height, s.width, s.in, s.out_height(), s.out_width(), s.out);
}

std::string shape_text(const AttentionShape& s) {
  return fmt::format("{} x {} positions, {} heads of {}", s.batch, s.context, s.heads, s.head_width());
}

std::string matrix_text(int rows, int columns) { return fmt::format("{} x {}", rows, columns); }

double flops_of(const DenseShape& s) { return 2.0 * s.batch * s.in * s.out; }

double flops_of(const ConvShape& s) {
  return 2.0 * s.batch * s.out_height() * s.out_width() * s.out * s.kernel * s.kernel * s.in;
}

// Those of one of attention's products, over the T (T + 1) / 2 pairs of each text that are not masked.
double flops_of_pairs(const AttentionShape& s) {
  return static_cast<double>(s.batch) * s.context * (s.context + 1.0) * s.width;
}

class CountingBackend final : public ComputeBackend {
 public:
  CountingBackend(ElementType type, std::vector<CountedOperation>& operations) : type_(type), operations_(operations) {}

  const char* name() const override { return "counting"; }

  std::span<std::byte> allocate(std::size_t bytes) override { return addresses_->allocate(bytes); }
  std::size_t allocated() const override { return addresses_->allocated(); }
  void upload(ConstFloats /*host*/, Out /*tensor*/) override {}
  ConstFloats host_view(In /*tensor*/) override { return {}; }
  ElementType element_type() const override { return type_; }
  Status status() const override { return addresses_->status(); }

  void dense_forward(const DenseShape& s, In x, In w, In b, Out y) override {
    product("dense forward, " + shape_text(s), flops_of(s), bytes_of(x, w, b), bytes_of(y));
  }
  void dense_backward(const DenseShape& s, In x, In w, In dy, Out dw, Out db, Out dx) override {
    product("dense weights' gradient, " + shape_text(s), flops_of(s), bytes_of(x, dy), bytes_of(dw, db));
    if (!dx.empty()) product("dense input's gradient, " + shape_text(s), flops_of(s), bytes_of(w, dy), bytes_of(dx));
  }

  void conv2d_forward(const ConvShape& s, In x, In w, In b, Out y) override {
    convolution("conv2d forward, " + shape_text(s), flops_of(s), bytes_of(x, w), bytes_of(y));
    if (s.bias) kernel("conv2d bias, " + shape_text(s), bytes_of(y, b), bytes_of(y));
  }
  void conv2d_backward(const ConvShape& s, In x, In w, In dy, Out dw, Out db, Out dx) override {
    convolution("conv2d weights' gradient, " + shape_text(s), flops_of(s), bytes_of(x, dy), bytes_of(dw));
    if (s.bias) kernel("conv2d bias' gradient, " + shape_text(s), bytes_of(dy), bytes_of(db));
    if (dx.empty()) return;
    convolution("conv2d input's gradient, " + shape_text(s), flops_of(s), bytes_of(w, dy), bytes_of(dx));
  }

  void relu_forward(Out y) override { kernel(fmt::format("relu, {}", y.size()), bytes_of(y), bytes_of(y)); }
  void relu_backward(In y, Out dy) override {
    kernel(fmt::format("relu's gradient, {}", y.size()), bytes_of(y, dy), bytes_of(dy));
  }
  void bias_forward(const BiasShape& s, In b, Out y) override {
    kernel("bias, " + matrix_text(s.rows, s.columns), bytes_of(y, b), bytes_of(y));
  }
  void bias_backward(const BiasShape& s, In y, Out dy, Out db) override {
    const std::string name = "bias' gradient, " + matrix_text(s.rows, s.columns);
    if (s.relu) {
      kernel(name, bytes_of(y, dy), bytes_of(dy, db));
    } else {
      kernel(name, bytes_of(dy), bytes_of(db));
    }
  }
  void add(In x, Out y) override { kernel(fmt::format("sum, {}", y.size()), bytes_of(x, y), bytes_of(y)); }

  void convert(ConstFloats x, Out y) override {
    kernel(fmt::format("conversion, {}", x.size()), bytes_of(x), bytes_of(y));
  }

  void max_pool_forward(const PoolShape& s, In x, Out y, std::span<unsigned char> index) override {
    kernel("max pool, " + shape_text(s), bytes_of(x), bytes_of(y, index));
  }
  void max_pool_backward(const PoolShape& s, In dy, std::span<const unsigned char> index, Out dx) override {
    kernel("max pool's gradient, " + shape_text(s), bytes_of(dy, index), bytes_of(dx));
  }

  void batch_norm_forward(const BatchNormShape& s, In x, In scale, In shift, const BatchMoments& batch,
                          const RunningMoments& running, In residual, Out y) override {
    const double moments = bytes_of(running.mean, running.variance);
    kernel("batch norm, " + matrix_text(s.rows, s.channels), bytes_of(x, scale, shift, residual) + moments,
           bytes_of(y, batch.mean, batch.inverse_deviation) + moments, 2);
  }
  void batch_norm_backward(const BatchNormShape& s, In x, In scale, In shift, const BatchMoments& batch, In y, Out dy,
                           Out dscale, Out dshift, Out dx) override {
    const bool masks = s.residual && s.relu;
    kernel("batch norm's gradient, " + matrix_text(s.rows, s.channels),
           bytes_of(x, scale, shift, batch.mean, batch.inverse_deviation, dy) + (masks ? bytes_of(y) : 0),
           bytes_of(dscale, dshift, dx) + (masks ? bytes_of(dy) : 0), dx.empty() ? 1 : 2);
  }
  void batch_norm_inference(const BatchNormShape& s, In x, In scale, In shift, const RunningMoments& running,
                            In residual, Out y) override {
    kernel("batch norm of evaluation, " + matrix_text(s.rows, s.channels),
           bytes_of(x, scale, shift, running.mean, running.variance, residual), bytes_of(y));
  }

  void mean_pool_forward(const MeanPoolShape& s, In x, Out y) override {
    kernel("mean pool, " + matrix_text(s.pixels, s.channels), bytes_of(x), bytes_of(y));
  }
  void mean_pool_backward(const MeanPoolShape& s, In dy, Out dx) override {
    kernel("mean pool's gradient, " + matrix_text(s.pixels, s.channels), bytes_of(dy), bytes_of(dx));
  }
  void subsample_forward(const SubsampleShape& s, In /*x*/, Out y) override {
    kernel("subsample, " + shape_text(s), taken_bytes(s), bytes_of(y));
  }
  void subsample_backward(const SubsampleShape& s, In /*dy*/, Out dx) override {
    kernel("subsample's gradient, " + shape_text(s), taken_bytes(s), bytes_of(dx));
  }

  // Which tokens repeat is not known, so that no row of the table is counted.
  void embedding_forward(const EmbeddingShape& s, std::span<const int> ids, In /*tokens*/, In positions,
                         Out y) override {
    kernel("embedding, " + matrix_text(s.rows(), s.width), bytes_of(ids, positions), bytes_of(y));
  }
  void embedding_backward(const EmbeddingShape& s, std::span<const int> ids, In dy, Out /*dtokens*/,
                          Out dpositions) override {
    kernel("embedding's gradient, " + matrix_text(s.rows(), s.width), bytes_of(ids, dy), bytes_of(dpositions), 3);
  }

  void layer_norm_forward(const LayerNormShape& s, In x, In gamma, In beta, Out y, Floats moments) override {
    kernel("layer norm, " + matrix_text(s.rows, s.width), bytes_of(x, gamma, beta), bytes_of(y, moments));
  }
  void layer_norm_backward(const LayerNormShape& s, In x, In gamma, ConstFloats moments, In dy, In residual, Out dgamma,
                           Out dbeta, Out dx) override {
    kernel("layer norm's gradient, " + matrix_text(s.rows, s.width), bytes_of(x, gamma, moments, dy, residual),
           bytes_of(dgamma, dbeta, dx), dx.empty() ? 1 : 2);
  }

  void gelu_forward(In x, Out y) override { kernel(fmt::format("gelu, {}", x.size()), bytes_of(x), bytes_of(y)); }
  void gelu_backward(In x, In dy, Out dx) override {
    kernel(fmt::format("gelu's gradient, {}", x.size()), bytes_of(x, dy), bytes_of(dx));
  }

  // Scores, and weighted values.
  void attention_forward(const AttentionShape& s, In qkv, Out y, Floats storage) override {
    kernel("attention, " + shape_text(s), bytes_of(qkv), bytes_of(y, storage)).flops = 2 * flops_of_pairs(s);
  }
  // The scores again, since they are not stored (Dao et al. 2022, algorithm 4), and the gradients of the weights, the
  // values, the queries and the keys.
  void attention_backward(const AttentionShape& s, In qkv, In y, In dy, Floats storage, Out dqkv) override {
    kernel("attention's gradient, " + shape_text(s), bytes_of(qkv, y, dy, storage), bytes_of(dqkv), 2).flops =
        5 * flops_of_pairs(s);
  }
  std::size_t attention_storage(const AttentionShape& s) const override { return addresses_->attention_storage(s); }

  void softmax_cross_entropy(int batch, int classes, In logits, std::span<const int> labels, double /*weight*/,
                             Out dlogits) override {
    kernel("loss, " + matrix_text(batch, classes), bytes_of(logits, labels), bytes_of(dlogits), 2);
  }
  void squared_error(In outputs, ConstFloats targets, std::span<const int> labels, double /*weight*/,
                     Out doutputs) override {
    kernel(fmt::format("loss, {}", outputs.size()), bytes_of(outputs, targets, labels), bytes_of(doutputs), 2);
  }
  LossAndCorrect loss(std::size_t /*turn*/) override { return {}; }

 private:
  // The pixels that are taken.
  double taken_bytes(const SubsampleShape& s) const {
    return static_cast<double>(s.batch) * s.out_height() * s.out_width() * s.in * static_cast<double>(size_of(type_));
  }

  CountedOperation& kernel(std::string name, double read, double written, int launches = 1) {
    return add_work({.name = std::move(name), .launches = launches, .bytes_read = read, .bytes_written = written});
  }
  void product(std::string name, double flops, double read, double written) {
    add_work({.name = std::move(name),
              .kind = WorkKind::kProduct,
              .flops = flops,
              .bytes_read = read,
              .bytes_written = written});
  }
  void convolution(std::string name, double flops, double read, double written) {
    add_work({.name = std::move(name),
              .kind = WorkKind::kConvolution,
              .flops = flops,
              .bytes_read = read,
              .bytes_written = written});
  }
  CountedOperation& add_work(CountedOperation operation) { return operations_.emplace_back(std::move(operation)); }

  const ElementType type_;
  std::vector<CountedOperation>& operations_;
  const std::unique_ptr<ComputeBackend> addresses_ = make_address_backend(/*stores_as_gpu=*/true);
};

}  // namespace

std::unique_ptr<ComputeBackend> make_counting_backend(ElementType type, std::vector<CountedOperation>& operations) {
  return std::make_unique<CountingBackend>(type, operations);
}

}  // namespace syncopate::worker
