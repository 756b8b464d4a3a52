#include "common/device/cuda/element_types.h"
#include "worker/backend/cuda/batch_norm_kernels.h"
#include "worker/backend/cuda/column_fold.h"
#include "worker/backend/cuda/kernel_grid.h"

namespace syncopate::worker {
namespace {

template <typename T>
__global__ void fold_moments(ColumnFold fold, BatchNormRows shape, const T* __restrict__ x, BatchNormMoments batch,
                             BatchNormRunning running) {
  __shared__ ColumnFold::Shared<Moments> shared;
  fold.run<Moments>(
      shared,
      [&](int column, std::size_t first, std::size_t end, std::size_t step) {
        Moments moments = Moments::none();
        each_row<T>(
            first, end, step, [&](std::size_t row) { return to_float(x[row * shape.channels + column]); },
            [&](std::size_t, float value) { moments.add(value); });
        return moments;
      },
      [&](int c, const Moments& moments) {
        const float variance = moments.squares / moments.count;
        const float unbiased = moments.squares / (moments.count > 1 ? moments.count - 1 : 1);
        batch.mean[c] = moments.mean;
        batch.inverse_deviation[c] = 1 / sqrtf(variance + kBatchNormEpsilon);
        running.mean[c] += kBatchNormMomentum * (moments.mean - running.mean[c]);
        running.variance[c] += kBatchNormMomentum * (unbiased - running.variance[c]);
      });
}

// What one channel's values are turned into: (x - mean) · factor + shift.
struct Line {
  float mean, factor, shift;
  __device__ float at(float x) const { return (x - mean) * factor + shift; }
};

// What is learnt, by channel.
template <typename T>
struct Learnt {
  explicit Learnt(const BatchNormScale& from) : scale(elements<T>(from.scale)), shift(elements<T>(from.shift)) {}
  const T* scale;
  const T* shift;
};

// Calls visit(index, value of the matrix) for this thread's elements, which are in one column.
template <typename T, typename Load, typename Visit>
__device__ void each_element(const BatchNormRows& shape, int column, Load load, Visit visit) {
  each_row<T>(
      static_cast<std::size_t>(blockIdx.y) * blockDim.y + threadIdx.y, shape.rows,
      static_cast<std::size_t>(gridDim.y) * blockDim.y,
      [&](std::size_t row) { return load(row * shape.channels + column); },
      [&](std::size_t row, auto loaded) { visit(row * shape.channels + column, loaded); });
}
__device__ int column_of_thread() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// An element of the input, and of the residual.
struct Addends {
  float x, residual;
};

// `spread` is the inverse deviation, or the variance. A null residual is none.
template <typename T>
__global__ void normalise(BatchNormRows shape, const T* __restrict__ x, Learnt<T> learnt,
                          const float* __restrict__ mean, const float* __restrict__ spread, bool is_variance,
                          const T* __restrict__ residual, T* __restrict__ y) {
  const int column = column_of_thread();
  if (column >= shape.channels) return;
  const float inverse_deviation = is_variance ? 1 / sqrtf(spread[column] + kBatchNormEpsilon) : spread[column];
  const Line line{mean[column], to_float(learnt.scale[column]) * inverse_deviation, to_float(learnt.shift[column])};
  each_element<T>(
      shape, column,
      [&](std::size_t i) {
        return Addends{to_float(x[i]), residual == nullptr ? 0.0f : to_float(residual[i])};
      },
      [&](std::size_t i, const Addends& from) {
        const float value = line.at(from.x) + from.residual;
        y[i] = from_float<T>(shape.relu && value < 0.0f ? 0.0f : value);
      });
}

// An element of the input, of the output where it is read, and the output's gradient.
struct Triple {
  float x, y, dy;
};

// dy where relu has not cut the output. Without a residual, that is computed again rather than read again; with one,
// dy is already what it is to be.
__device__ float gradient(const Line& line, const BatchNormRows& shape, const Triple& at) {
  return shape.relu && !shape.residual && !(line.at(at.x) > 0.0f) ? 0.0f : at.dy;
}

template <typename T>
__device__ Line line_of(int c, const Learnt<T>& learnt, const BatchNormMoments& batch) {
  return {batch.mean[c], to_float(learnt.scale[c]) * batch.inverse_deviation[c], to_float(learnt.shift[c])};
}

// Sums the gradient, and the gradient times x - mean. Behind a residual and relu, y says where dy becomes 0.
template <typename T>
__global__ void fold_gradients(ColumnFold fold, BatchNormRows shape, const T* __restrict__ x, Learnt<T> learnt,
                               BatchNormMoments batch, const T* __restrict__ y, T* __restrict__ dy, BatchNormSums exact,
                               T* __restrict__ dscale, T* __restrict__ dshift) {
  __shared__ ColumnFold::Shared<SumPair> shared;
  fold.run<SumPair>(
      shared,
      [&](int column, std::size_t first, std::size_t end, std::size_t step) {
        const Line line = line_of(column, learnt, batch);
        const bool cuts = shape.residual && shape.relu;
        SumPair sums = SumPair::none();
        each_row<T>(
            first, end, step,
            [&](std::size_t row) {
              const std::size_t i = row * shape.channels + column;
              return Triple{to_float(x[i]), cuts ? to_float(y[i]) : 1.0f, to_float(dy[i])};
            },
            [&](std::size_t row, const Triple& at) {
              const bool is_cut = cuts && at.y == 0.0f;
              if (is_cut) dy[row * shape.channels + column] = from_float<T>(0.0f);
              const float of_output = is_cut ? 0.0f : gradient(line, shape, at);
              sums.first += of_output;
              sums.second += of_output * (at.x - line.mean);
            });
        return sums;
      },
      [&](int c, const SumPair& sums) {
        exact.shift[c] = sums.first;
        exact.scale[c] = sums.second * batch.inverse_deviation[c];
        dshift[c] = from_float<T>(exact.shift[c]);
        dscale[c] = from_float<T>(exact.scale[c]);
      });
}

// dx = factor · (gradient - mean gradient - unit · mean of gradient·unit), unit = (x - mean) · inverse_deviation.
template <typename T>
__global__ void input_gradient(BatchNormRows shape, const T* __restrict__ x, Learnt<T> learnt, BatchNormMoments batch,
                               const T* __restrict__ dy, BatchNormSums exact, T* __restrict__ dx) {
  const int column = column_of_thread();
  if (column >= shape.channels) return;
  const Line line = line_of(column, learnt, batch);
  const auto rows = static_cast<float>(shape.rows);
  const float common = exact.shift[column] / rows;
  const float slope = exact.scale[column] * batch.inverse_deviation[column] / rows;
  each_element<T>(
      shape, column,
      [&](std::size_t i) {
        return Triple{to_float(x[i]), 1.0f, to_float(dy[i])};
      },
      [&](std::size_t i, const Triple& at) {
        dx[i] = from_float<T>(line.factor * (gradient(line, shape, at) - common - (at.x - line.mean) * slope));
      });
}

template <typename T>
void launch_normalise(const BatchNormRows& shape, In x, const BatchNormScale& learnt, const float* mean,
                      const float* spread, bool is_variance, In residual, Out y, cudaStream_t stream) {
  normalise<T><<<matrix_grid<T>(shape.rows, shape.channels), matrix_block(shape.channels), 0, stream>>>(
      shape, elements<T>(x), Learnt<T>(learnt), mean, spread, is_variance, elements<T>(residual), elements<T>(y));
}

}  // namespace

cudaError_t launch_batch_norm_forward(const BatchNormRows& shape, In x, const BatchNormScale& learnt,
                                      const BatchNormMoments& batch, const BatchNormRunning& running, In residual,
                                      Out y, const FoldSpace& space, cudaStream_t stream) {
  const ColumnFold fold(shape.rows, shape.channels, space);
  return with_element(x.type(), [&]<typename T>(T) {
    fold_moments<T><<<fold.grid(), fold.block(), 0, stream>>>(fold, shape, elements<T>(x), batch, running);
    launch_normalise<T>(shape, x, learnt, batch.mean, batch.inverse_deviation, false, residual, y, stream);
    return cudaGetLastError();
  });
}

cudaError_t launch_batch_norm_backward(const BatchNormRows& shape, In x, const BatchNormScale& learnt,
                                       const BatchNormMoments& batch, In y, Out dy, const BatchNormSums& exact,
                                       Out dscale, Out dshift, Out dx, const FoldSpace& space, cudaStream_t stream) {
  const ColumnFold fold(shape.rows, shape.channels, space);
  return with_element(x.type(), [&]<typename T>(T) {
    const Learnt<T> of_type(learnt);
    fold_gradients<T><<<fold.grid(), fold.block(), 0, stream>>>(fold, shape, elements<T>(x), of_type, batch,
                                                                elements<T>(y), elements<T>(dy), exact,
                                                                elements<T>(dscale), elements<T>(dshift));
    if (!dx.empty()) {
      input_gradient<T><<<matrix_grid<T>(shape.rows, shape.channels), matrix_block(shape.channels), 0, stream>>>(
          shape, elements<T>(x), of_type, batch, elements<T>(dy), exact, elements<T>(dx));
    }
    return cudaGetLastError();
  });
}

cudaError_t launch_batch_norm_inference(const BatchNormRows& shape, In x, const BatchNormScale& learnt,
                                        const BatchNormRunning& running, In residual, Out y, cudaStream_t stream) {
  return with_element(x.type(), [&]<typename T>(T) {
    launch_normalise<T>(shape, x, learnt, running.mean, running.variance, true, residual, y, stream);
    return cudaGetLastError();
  });
}

}  // namespace syncopate::worker
