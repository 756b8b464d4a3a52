#include "worker/backend/cuda/cuda_backend.h"

#include <array>
#include <cassert>
#include <limits>
#include <utility>
#include <vector>

#include "common/device/cuda/cuda_handles.h"
#include "common/device/cuda/cuda_status.h"
#include "common/sync_strategy.h"
#include "worker/backend/cuda/attention_kernels.h"
#include "worker/backend/cuda/batch_norm_kernels.h"
#include "worker/backend/cuda/cuda_context.h"
#include "worker/backend/cuda/cuda_conv.h"
#include "worker/backend/cuda/cuda_dense.h"
#include "worker/backend/cuda/element_kernels.h"
#include "worker/backend/cuda/host_exchange.h"
#include "worker/backend/cuda/image_kernels.h"
#include "worker/backend/cuda/library_status.h"
#include "worker/backend/cuda/loss_kernels.h"
#include "worker/backend/cuda/phase_clock.h"
#include "worker/backend/cuda/pool_kernels.h"
#include "worker/backend/cuda/sequence_kernels.h"

namespace syncopate::worker {
namespace {

// NVIDIA recommends 32 MiB for cuBLAS on Hopper; convolutions take the rest where a faster algorithm wants it, and more
// where none can do with less.
constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;

// For the work of one step, and for what libraries load at its first use: a GPU that takes longer hangs.
constexpr Duration kTimeout = std::chrono::seconds(60);

class CudaBackend final : public ComputeBackend {
 public:
  explicit CudaBackend(Device& device) : device_(device), device_failure_(failure_of(device)) {}
  ~CudaBackend() override;

  Status open(Precision precision);

  const char* name() const override { return "cuda"; }

  std::span<std::byte> allocate(std::size_t bytes) override;
  std::size_t allocated() const override { return allocated_; }
  ElementType element_type() const override { return element_type_of(context_.precision); }
  void upload(ConstFloats host, Out tensor) override;
  ConstFloats host_view(In tensor) override;
  void finish() override {
    if (ready()) keep(exchange_->wait());
  }
  // The device's failure is the cause of what else fails behind it.
  Status status() const override { return device_.status().ok() ? failure_ : device_.status(); }

  void dense_forward(const DenseShape& shape, In x, In w, In b, Out y) override {
    if (give("dense_forward")) keep(prepared(denses_, shape).forward(x, w, b, y));
  }
  void dense_backward(const DenseShape& shape, In x, In w, In dy, Out dw, Out db, Out dx) override {
    if (give("dense_backward")) keep(prepared(denses_, shape).backward(x, w, dy, dw, db, dx));
  }
  void conv2d_forward(const ConvShape& shape, In x, In w, In b, Out y) override {
    if (give("conv2d_forward")) keep(prepared(convs_, shape).forward(x, w, b, y));
  }
  void conv2d_backward(const ConvShape& shape, In x, In w, In dy, Out dw, Out db, Out dx) override {
    if (give("conv2d_backward")) keep(prepared(convs_, shape).backward(x, w, dy, dw, db, dx));
  }

  void relu_forward(Out y) override {
    if (give("relu_forward")) keep(launch_relu_forward(y, context_.stream));
  }
  void relu_backward(In y, Out dy) override {
    if (give("relu_backward")) keep(launch_relu_backward(y, dy, context_.stream));
  }
  void bias_forward(const BiasShape& shape, In b, Out y) override {
    if (!give("add_bias")) return;
    keep(launch_add_bias(y, b, static_cast<std::size_t>(shape.rows), shape.columns, shape.relu, context_.stream));
  }
  void bias_backward(const BiasShape& shape, In y, Out dy, Out db) override {
    if (!give("bias_gradient")) return;
    keep(launch_bias_gradient(shape.relu ? y : In(), dy, static_cast<std::size_t>(shape.rows), shape.columns, db,
                              context_.fold, context_.stream));
  }
  void convert(ConstFloats x, Out y) override {
    if (give("convert")) device_.compute().convert(x, y);
  }
  void add(In x, Out y) override {
    if (give("add")) keep(launch_add(x, y, context_.stream));
  }

  void max_pool_forward(const PoolShape& shape, In x, Out y, std::span<unsigned char> index) override {
    if (!give("max_pool_forward")) return;
    keep(launch_max_pool_forward(shape, x, y, index.data(), context_.stream));
  }
  void max_pool_backward(const PoolShape& shape, In dy, std::span<const unsigned char> index, Out dx) override {
    if (!give("max_pool_backward")) return;
    keep(launch_max_pool_backward(shape, dy, index.data(), dx, context_.stream));
  }

  void batch_norm_forward(const BatchNormShape& shape, In x, In scale, In shift, const BatchMoments& batch,
                          const RunningMoments& running, In residual, Out y) override;
  void batch_norm_backward(const BatchNormShape& shape, In x, In scale, In shift, const BatchMoments& batch, In y,
                           Out dy, Out dscale, Out dshift, Out dx) override;
  void batch_norm_inference(const BatchNormShape& shape, In x, In scale, In shift, const RunningMoments& running,
                            In residual, Out y) override;

  void mean_pool_forward(const MeanPoolShape& shape, In x, Out y) override {
    if (give("mean_pool_forward")) keep(launch_mean_pool_forward(shape, x, y, context_.stream));
  }
  void mean_pool_backward(const MeanPoolShape& shape, In dy, Out dx) override {
    if (give("mean_pool_backward")) keep(launch_mean_pool_backward(shape, dy, dx, context_.stream));
  }
  void subsample_forward(const SubsampleShape& shape, In x, Out y) override {
    if (give("subsample_forward")) keep(launch_subsample_forward(shape, x, y, context_.stream));
  }
  void subsample_backward(const SubsampleShape& shape, In dy, Out dx) override {
    if (give("subsample_backward")) keep(launch_subsample_backward(shape, dy, dx, context_.stream));
  }

  void embedding_forward(const EmbeddingShape& shape, std::span<const int> ids, In tokens, In positions,
                         Out y) override {
    if (!give("embedding_forward")) return;
    keep(launch_embedding_forward(shape, ids.data(), tokens, positions, y, context_.stream));
  }
  void embedding_backward(const EmbeddingShape& shape, std::span<const int> ids, In dy, Out dtokens,
                          Out dpositions) override {
    if (!give("embedding_backward")) return;
    keep(context_.reserve(embedding_workspace(shape)));
    if (!ready()) return;
    keep(launch_embedding_backward(shape, ids.data(), dy, dtokens, context_.workspace.data(), context_.stream));
    keep(launch_column_sums(dy, static_cast<std::size_t>(shape.batch), shape.context * shape.width, dpositions,
                            context_.fold, context_.stream));
  }
  void layer_norm_forward(const LayerNormShape& shape, In x, In gamma, In beta, Out y, Floats moments) override {
    if (!give("layer_norm_forward")) return;
    keep(launch_layer_norm_forward(shape, x, gamma, beta, y, moments.data(), context_.stream));
  }
  void layer_norm_backward(const LayerNormShape& shape, In x, In gamma, ConstFloats moments, In dy, In residual,
                           Out dgamma, Out dbeta, Out dx) override {
    if (!give("layer_norm_backward")) return;
    keep(launch_layer_norm_backward(shape, x, gamma, moments.data(), dy, residual, dgamma, dbeta, dx, context_.fold,
                                    context_.stream));
  }
  void gelu_forward(In x, Out y) override {
    if (give("gelu_forward")) keep(launch_gelu_forward(x, y, context_.stream));
  }
  void gelu_backward(In x, In dy, Out dx) override {
    if (give("gelu_backward")) keep(launch_gelu_backward(x, dy, dx, context_.stream));
  }
  void attention_forward(const AttentionShape& shape, In qkv, Out y, Floats storage) override {
    if (!give("attention_forward")) return;
    keep(launch_attention_forward(shape, qkv, y, storage.data(), context_.stream));
  }
  void attention_backward(const AttentionShape& shape, In qkv, In y, In dy, Floats storage, Out dqkv) override {
    if (!give("attention_backward")) return;
    keep(launch_attention_backward(shape, qkv, y, dy, storage.data(), dqkv, context_.stream));
  }
  std::size_t attention_storage(const AttentionShape& shape) const override { return shape.row_statistics(); }

  void softmax_cross_entropy(int batch, int classes, In logits, std::span<const int> labels, double weight,
                             Out dlogits) override;
  void squared_error(In outputs, ConstFloats targets, std::span<const int> labels, double weight,
                     Out doutputs) override;
  void scale_gradients_by(ConstFloats factor) override { gradient_factor_ = factor; }
  using ComputeBackend::loss;
  LossAndCorrect loss(std::size_t turn) override;
  void begin_turn(std::size_t turn) override;

  PhaseTimer* phase_timer() override { return phases_.get(); }

 private:
  static BatchNormRows rows_of(const BatchNormShape& s) {
    return {static_cast<std::size_t>(s.rows), s.channels, s.relu, s.residual};
  }

  // The operation of this shape, made ready at its first use. A model has few shapes: a search beats a hash.
  template <typename Operation, typename Shape>
  Operation& prepared(std::vector<std::unique_ptr<Operation>>& operations, const Shape& shape) {
    for (const auto& operation : operations) {
      if (operation->shape() == shape) return *operation;
    }
    operations.push_back(std::make_unique<Operation>(shape, context_));
    return *operations.back();
  }

  // Device memory for so many floats, for upload() and host_view() of other numbers.
  Floats conversion_of(std::size_t count);
  Status open_libraries();
  Status open_loss();
  // Gives a loss of `batch` samples to the device, and the copy of its record to the host.
  template <typename Launch>
  void launch_loss(std::size_t batch, const char* operation, Launch launch);

  bool ready() const { return failure_.ok() && device_.status().ok(); }
  // Whether an operation may be given to the device, which then knows its name.
  bool give(const char* operation) {
    device_failure_.giving(operation);
    return ready();
  }
  void keep(Status status) {
    if (status.ok() || !failure_.ok()) return;
    failure_ = std::move(status);
    // Libraries do not tell a failure of the device from one of their own.
    if (const cudaError_t last = cudaPeekAtLastError(); breaks_device(last)) device_failure_.keep(last);
  }
  void keep(cudaError_t result) { device_failure_.keep(result); }
  static TimePoint deadline() { return SteadyClock().now() + kTimeout; }

  Device& device_;
  FirstFailure& device_failure_;
  std::size_t allocated_ = 0;
  CudaContext context_;
  std::vector<std::unique_ptr<CudaDense>> denses_;
  std::vector<std::unique_ptr<CudaConv>> convs_;
  std::unique_ptr<HostExchange> exchange_;
  std::span<std::byte> conversion_;
  std::unique_ptr<PhaseClock> phases_;

  // What loss() returns of one step.
  struct StepLoss {
    std::span<std::byte> host;    // one LossRecord, pinned, copied from `loss_record_`
    std::unique_ptr<Event> done;  // the copy
  };
  std::span<std::byte> samples_;                 // SampleLoss of each sample
  std::span<std::byte> loss_record_;             // one LossRecord
  std::array<StepLoss, kStepsUnderWay> losses_;  // by turn
  std::size_t turn_ = 0;
  ConstFloats gradient_factor_;  // of losses' gradients; none: 1

  Status failure_;  // the first that is not the device's
};

CudaBackend::~CudaBackend() {
  // What was prepared goes before the libraries' handles.
  denses_.clear();
  convs_.clear();
  if (context_.dnn != nullptr) cudnnDestroy(context_.dnn);
  if (context_.blas != nullptr) cublasLtDestroy(context_.blas);
}

Status CudaBackend::open(Precision precision) {
  context_.device = &device_;
  context_.precision = precision;
  context_.timeout = kTimeout;
  context_.stream = raw(device_.compute());
  SYNCOPATE_RETURN_IF_ERROR(open_libraries().in(device_.description()));
  SYNCOPATE_RETURN_IF_ERROR(context_.reserve(kWorkspaceBytes));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> fold, device_.allocate(FoldSpace::kBytes));
  context_.fold = FoldSpace::in(fold.data());

  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<Event> exchanged, device_.make_event());
  exchange_ = std::make_unique<HostExchange>(device_, std::move(exchanged), kTimeout);
  SYNCOPATE_ASSIGN_OR_RETURN(phases_, PhaseClock::make(device_, kTimeout));
  return open_loss();
}

Status CudaBackend::open_libraries() {
  SYNCOPATE_RETURN_IF_ERROR(library_status(cublasLtCreate(&context_.blas), "cublasLtCreate"));
  SYNCOPATE_RETURN_IF_ERROR(library_status(cudnnCreate(&context_.dnn), "cudnnCreate"));
  return library_status(cudnnSetStream(context_.dnn, context_.stream), "cudnnSetStream");
}

Status CudaBackend::open_loss() {
  SYNCOPATE_ASSIGN_OR_RETURN(loss_record_, device_.allocate(sizeof(LossRecord)));
  for (StepLoss& loss : losses_) {
    SYNCOPATE_ASSIGN_OR_RETURN(loss.host, device_.allocate_pinned(sizeof(LossRecord)));
    SYNCOPATE_ASSIGN_OR_RETURN(loss.done, device_.make_event());
  }
  return {};
}

std::span<std::byte> CudaBackend::allocate(std::size_t bytes) {
  const Result<std::span<std::byte>> memory = device_.allocate(bytes);
  keep(memory.status());
  if (!memory.ok()) return {};
  allocated_ += bytes;
  return *memory;
}

void CudaBackend::upload(ConstFloats host, Out tensor) {
  if (tensor.type() == ElementType::kFloat32) {
    keep(exchange_->upload(std::as_bytes(host), tensor.bytes()));
    return;
  }
  const Floats floats = conversion_of(tensor.size());
  if (!ready()) return;
  keep(exchange_->upload(std::as_bytes(host), std::as_writable_bytes(floats)));
  if (ready()) device_.compute().convert(floats, tensor);
}

ConstFloats CudaBackend::host_view(In tensor) {
  if (tensor.type() != ElementType::kFloat32) {
    const Floats floats = conversion_of(tensor.size());
    if (!ready()) return {};
    device_.compute().convert(tensor, floats);
    tensor = floats;
  }
  const Result<std::span<const std::byte>> view = exchange_->view(tensor.bytes());
  keep(view.status());
  if (!view.ok()) return {};
  return {reinterpret_cast<const float*>(view->data()), tensor.size()};
}

Floats CudaBackend::conversion_of(std::size_t count) {
  keep(context_.grow(conversion_, count * sizeof(float)));
  if (!ready()) return {};
  return {reinterpret_cast<float*>(conversion_.data()), count};
}

void CudaBackend::batch_norm_forward(const BatchNormShape& shape, In x, In scale, In shift, const BatchMoments& batch,
                                     const RunningMoments& running, In residual, Out y) {
  if (!give("batch_norm_forward")) return;
  keep(launch_batch_norm_forward(rows_of(shape), x, {scale, shift}, {batch.mean.data(), batch.inverse_deviation.data()},
                                 {running.mean.data(), running.variance.data()}, shape.residual ? residual : In(), y,
                                 context_.fold, context_.stream));
}

void CudaBackend::batch_norm_backward(const BatchNormShape& shape, In x, In scale, In shift, const BatchMoments& batch,
                                      In y, Out dy, Out dscale, Out dshift, Out dx) {
  if (!give("batch_norm_backward")) return;
  keep(context_.reserve(2 * static_cast<std::size_t>(shape.channels) * sizeof(float)));
  if (!ready()) return;
  auto* const exact = reinterpret_cast<float*>(context_.workspace.data());
  keep(launch_batch_norm_backward(rows_of(shape), x, {scale, shift},
                                  {batch.mean.data(), batch.inverse_deviation.data()}, y, dy,
                                  {exact, exact + shape.channels}, dscale, dshift, dx, context_.fold, context_.stream));
}

void CudaBackend::batch_norm_inference(const BatchNormShape& shape, In x, In scale, In shift,
                                       const RunningMoments& running, In residual, Out y) {
  if (!give("batch_norm_inference")) return;
  keep(launch_batch_norm_inference(rows_of(shape), x, {scale, shift}, {running.mean.data(), running.variance.data()},
                                   shape.residual ? residual : In(), y, context_.stream));
}

void CudaBackend::softmax_cross_entropy(int batch, int classes, In logits, std::span<const int> labels,
                                        [[maybe_unused]] double weight, Out dlogits) {
  assert(weight == 1);
  launch_loss(static_cast<std::size_t>(batch), "softmax_cross_entropy", [&](SampleLoss* samples, LossRecord* record) {
    return launch_softmax_cross_entropy(batch, classes, logits, labels.data(), gradient_factor_.data(), dlogits,
                                        samples, record, context_.stream);
  });
}

void CudaBackend::squared_error(In outputs, ConstFloats targets, std::span<const int> labels,
                                [[maybe_unused]] double weight, Out doutputs) {
  assert(weight == 1);
  launch_loss(labels.size(), "squared_error", [&](SampleLoss* samples, LossRecord* record) {
    return launch_squared_error(static_cast<int>(labels.size()), outputs, targets.data(), gradient_factor_.data(),
                                doutputs, samples, record, context_.stream);
  });
}

template <typename Launch>
void CudaBackend::launch_loss(std::size_t batch, const char* operation, Launch launch) {
  const std::size_t bytes = batch * sizeof(SampleLoss);
  keep(context_.grow(samples_, bytes));
  if (!give(operation)) return;
  keep(launch(reinterpret_cast<SampleLoss*>(samples_.data()), reinterpret_cast<LossRecord*>(loss_record_.data())));
  device_.compute().copy_to_host(loss_record_, losses_[turn_].host);
  device_.compute().record(*losses_[turn_].done);
}

void CudaBackend::begin_turn(std::size_t turn) {
  turn_ = turn;
  phases_->begin_turn(turn);
}

LossAndCorrect CudaBackend::loss(std::size_t turn) {
  if (ready()) keep(device_.wait(*losses_[turn].done, deadline()));
  if (!ready()) return {.loss = std::numeric_limits<double>::quiet_NaN()};
  const auto* const record = reinterpret_cast<const LossRecord*>(losses_[turn].host.data());
  return {record->loss, record->correct};
}

}  // namespace

Result<std::unique_ptr<ComputeBackend>> make_cuda_backend(Device& device, Precision precision) {
  auto backend = std::make_unique<CudaBackend>(device);
  SYNCOPATE_RETURN_IF_ERROR(backend->open(precision));
  return std::unique_ptr<ComputeBackend>(std::move(backend));
}

}  // namespace syncopate::worker
