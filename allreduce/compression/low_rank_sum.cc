#include <algorithm>
#include <optional>
#include <vector>

#include "allreduce/compression/reductions.h"
#include "allreduce/compression/stopwatch.h"
#include "common/codec/power_sgd.h"
#include "common/float_loops.h"
#include "common/os/aligned_buffer.h"

namespace syncopate::allreduce {
namespace {

// A tensor that is no table, and how it travels: as factors, or as it is.
struct Tensor {
  Range range;
  std::optional<power_sgd::Shape> shape;
  std::size_t warm_start = 0;  // where its Q lies among those of all

  // Elements in the first all_reduce, and in the second.
  std::size_t first() const { return shape ? shape->left_elements() : range.size(); }
  std::size_t second() const { return shape ? shape->right_elements() : 0; }
};

std::vector<Tensor> tensors_of(const ParamLayout& layout, int rank) {
  std::vector<Tensor> tensors;
  std::size_t warm_start = 0;
  for (const TensorSpec& spec : std::span(layout.tensors()).subspan(layout.tables().size())) {
    tensors.push_back({spec.range, power_sgd::shape_of(spec.shape, rank), warm_start});
    warm_start += tensors.back().second();
  }
  return tensors;
}

std::size_t sum_of(std::span<const Tensor> tensors, std::size_t (Tensor::*elements)() const) {
  std::size_t sum = 0;
  for (const Tensor& tensor : tensors) sum += (tensor.*elements)();
  return sum;
}

// Gives out neighbouring parts of a buffer.
class Parts {
 public:
  explicit Parts(std::span<float> buffer) : buffer_(buffer) {}

  std::span<float> next(std::size_t elements) {
    const std::span<float> part = buffer_.subspan(used_, elements);
    used_ += elements;
    return part;
  }
  std::span<float> used() const { return buffer_.first(used_); }

 private:
  std::span<float> buffer_;
  std::size_t used_ = 0;
};

class LowRankSum final : public CompressedReduction {
 public:
  LowRankSum(const ReductionParts& parts, std::vector<Tensor> tensors, std::span<float> first, std::span<float> second)
      : collective_(parts.collective),
        clock_(parts.clock),
        seed_(parts.seed),
        layout_(parts.layout),
        tensors_(std::move(tensors)),
        warm_(sum_of(tensors_, &Tensor::second)),
        residual_(parts.layout.size()),
        first_(first),
        second_(second) {}

  Result<Duration> reduce(Range bucket, std::span<float> gradients, const ReductionStep& /*step*/,
                          TimePoint deadline) override {
    const std::span<const Tensor> tensors = tensors_in(bucket);
    const auto gradient_of = [&](const Tensor& tensor) {
      return gradients.subspan(tensor.range.begin - bucket.begin, tensor.range.size());
    };
    Stopwatch stopwatch(clock_);
    Parts first(first_), second(second_);
    stopwatch.time([&] {
      for (const Tensor& tensor : tensors) begin(tensor, gradient_of(tensor), first.next(tensor.first()));
    });
    SYNCOPATE_RETURN_IF_ERROR(collective_.all_reduce(first.used(), deadline));
    stopwatch.time([&] {
      first = Parts(first_);
      for (const Tensor& tensor : tensors) {
        go_on(tensor, gradient_of(tensor), first.next(tensor.first()), second.next(tensor.second()));
      }
    });
    if (second.used().empty()) return stopwatch.total();
    SYNCOPATE_RETURN_IF_ERROR(collective_.all_reduce(second.used(), deadline));
    stopwatch.time([&] {
      first = Parts(first_);
      second = Parts(second_);
      for (const Tensor& tensor : tensors) {
        finish(tensor, gradient_of(tensor), first.next(tensor.first()), second.next(tensor.second()));
      }
    });
    return stopwatch.total();
  }

  std::vector<ReductionMemory> memories() override {
    return {residual_memory("residual", layout_, residual_.span()),
            {.name = "powersgd.right_factors", .alike = true, .values = warm_.span()}};
  }

 private:
  // Those of the bucket, which holds whole ones.
  std::span<const Tensor> tensors_in(Range bucket) const {
    const auto begin =
        std::ranges::lower_bound(tensors_, bucket.begin, {}, [](const Tensor& t) { return t.range.begin; });
    const auto end = std::ranges::lower_bound(tensors_, bucket.end, {}, [](const Tensor& t) { return t.range.begin; });
    return std::span(tensors_).subspan(static_cast<std::size_t>(begin - tensors_.begin()),
                                       static_cast<std::size_t>(end - begin));
  }
  std::span<float> residual_of(const Tensor& tensor) { return slice(residual_.span(), tensor.range); }
  std::span<float> warm_start_of(const Tensor& tensor) {
    return warm_.span().subspan(tensor.warm_start, tensor.second());
  }

  // The residual becomes M, the gradient and what was lost before; P = M·Q.
  void begin(const Tensor& tensor, std::span<const float> gradient, std::span<float> left) {
    if (!tensor.shape) {
      std::ranges::copy(gradient, left.begin());
      return;
    }
    const std::span<float> matrix = residual_of(tensor);
    add(gradient.data(), matrix.data(), matrix.size());
    const std::span<float> right = warm_start_of(tensor);
    power_sgd::fill_empty_columns(seed_ + tensor.range.begin, tensor.shape->columns, right);
    power_sgd::left_factor(*tensor.shape, matrix, right, left);
  }

  // Q = Mᵀ·P; the residual becomes what both lose of M.
  void go_on(const Tensor& tensor, std::span<float> gradient, std::span<float> left, std::span<float> right) {
    if (!tensor.shape) {
      std::ranges::copy(left, gradient.begin());
      return;
    }
    const std::span<float> matrix = residual_of(tensor);
    power_sgd::orthogonalize(tensor.shape->rows, left);
    power_sgd::right_factor(*tensor.shape, matrix, left, right);
    power_sgd::subtract_product(*tensor.shape, left, right, matrix);
  }

  // The gradient becomes P·Qᵀ, where Q is the sum of all ranks'.
  void finish(const Tensor& tensor, std::span<float> gradient, std::span<const float> left,
              std::span<const float> right) {
    if (!tensor.shape) return;
    power_sgd::reconstruct(*tensor.shape, left, right, gradient);
    std::ranges::copy(right, warm_start_of(tensor).begin());
  }

  Collective& collective_;
  const Clock& clock_;
  const std::uint64_t seed_;
  const ParamLayout layout_;
  const std::vector<Tensor> tensors_;  // in the order of the arena
  AlignedBuffer warm_;                 // Q of the last step, by tensor
  AlignedBuffer residual_;             // of matrices
  // In the collective's memory: P and what goes as it is, and Q, of the tensors of one bucket.
  std::span<float> first_;
  std::span<float> second_;
};

}  // namespace

MadeReduction make_low_rank_sum(const ReductionParts& parts) {
  std::vector<Tensor> tensors = tensors_of(parts.layout, parts.codec.rank);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> first,
                             parts.collective.allocate(std::max(sum_of(tensors, &Tensor::first), kAlignment)));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> second,
                             parts.collective.allocate(std::max(sum_of(tensors, &Tensor::second), kAlignment)));
  return std::unique_ptr<CompressedReduction>(std::make_unique<LowRankSum>(parts, std::move(tensors), first, second));
}

}  // namespace syncopate::allreduce
