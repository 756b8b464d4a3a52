// The part of cuDNN that the product calls: convolutions of images whose channels come last, by its legacy interface.
#define CUDNN_DEPRECATED
#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include "tests/software_gpu/library_work.h"
#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/settings.h"
#include "tests/software_gpu/streams.h"

using namespace software_gpu;

struct cudnnContext {
  cudaStream_t stream;
};
struct cudnnTensorStruct {
  int images, channels, height, width;
  Element element;
};
struct cudnnFilterStruct {
  int out, in, height, width;
  Element element;
};
struct cudnnConvolutionStruct {
  int padding, stride;
  cudnnMathType_t math;
};

namespace {

constexpr int kAlgorithm = 1, kRefusedAlgorithm = 6, kUndeterminedAlgorithm = 0;

struct Shape {
  cudnnTensorStruct x, y;
  cudnnFilterStruct filter;
  cudnnConvolutionStruct convolution;

  std::size_t pixels() const { return size(y.height) * size(y.width); }  // of the output
  std::size_t patch() const { return size(filter.height) * size(filter.width) * size(filter.in); }
  std::size_t x_image() const { return size(x.height) * size(x.width) * size(x.channels); }
  std::size_t y_image() const { return pixels() * size(y.channels); }
  std::size_t x_size() const { return size(x.images) * x_image(); }
  std::size_t y_size() const { return size(y.images) * y_image(); }
  std::size_t filter_size() const { return size(filter.out) * patch(); }
  bool is_of_16_bits() const { return x.element != Element::kFloat; }

  bool fits() const {
    const auto out = [&](int in, int kernel) {
      return (in + 2 * convolution.padding - kernel) / convolution.stride + 1;
    };
    return out(x.height, filter.height) == y.height && out(x.width, filter.width) == y.width &&
           x.channels == filter.in && y.channels == filter.out && x.images == y.images;
  }

  static std::size_t size(int number) { return static_cast<std::size_t>(number); }
};

// Calls each(place in a matrix of patches, place in the image) for each pixel of each patch; -1: it is padding.
template <typename Each>
void each_pixel(const Shape& s, const Each& each) {
  const int padding = s.convolution.padding, stride = s.convolution.stride;
  std::size_t place = 0;
  for (int row = 0; row < s.y.height; ++row) {
    for (int column = 0; column < s.y.width; ++column) {
      for (int i = 0; i < s.filter.height; ++i) {
        for (int j = 0; j < s.filter.width; ++j, place += Shape::size(s.filter.in)) {
          const int h = row * stride + i - padding, w = column * stride + j - padding;
          const bool is_inside = h >= 0 && h < s.x.height && w >= 0 && w < s.x.width;
          each(place, is_inside ? (long{h} * s.x.width + w) * s.x.channels : -1);
        }
      }
    }
  }
}

// The patches of an image, a row each.
std::vector<float> patches_of(const Shape& s, const float* image) {
  std::vector<float> patches(s.pixels() * s.patch());
  each_pixel(s, [&](std::size_t place, long from) {
    if (from >= 0) std::copy_n(image + from, s.x.channels, patches.data() + place);
  });
  return patches;
}

void convolve_forward(const Shape& s, const float* x, const float* filter, float* y) {
  for (std::size_t image = 0; image < Shape::size(s.x.images); ++image) {
    multiply(false, true, s.pixels(), Shape::size(s.filter.out), s.patch(),
             patches_of(s, x + image * s.x_image()).data(), s.patch(), filter, s.patch(), 0, y + image * s.y_image(),
             Shape::size(s.filter.out));
  }
}

void convolve_filter(const Shape& s, const float* x, const float* dy, float* dfilter) {
  const std::size_t out = Shape::size(s.filter.out);
  for (std::size_t image = 0; image < Shape::size(s.x.images); ++image) {
    multiply(true, false, out, s.patch(), s.pixels(), dy + image * s.y_image(), out,
             patches_of(s, x + image * s.x_image()).data(), s.patch(), image == 0 ? 0.0f : 1.0f, dfilter, s.patch());
  }
}

void convolve_data(const Shape& s, const float* filter, const float* dy, float* dx) {
  const std::size_t out = Shape::size(s.filter.out);
  std::vector<float> patches(s.pixels() * s.patch());
  for (std::size_t image = 0; image < Shape::size(s.x.images); ++image) {
    multiply(false, false, s.pixels(), s.patch(), out, dy + image * s.y_image(), out, filter, s.patch(), 0,
             patches.data(), s.patch());
    float* const to = dx + image * s.x_image();
    std::fill_n(to, s.x_image(), 0.0f);
    each_pixel(s, [&](std::size_t place, long at) {
      for (int channel = 0; at >= 0 && channel < s.x.channels; ++channel) {
        to[at + channel] += patches[place + Shape::size(channel)];
      }
    });
  }
}

struct Call {
  const char* name;
  void (*convolve)(const Shape& shape, const float* first, const float* second, float* result);
  Operand first, second, result;
};

// Tensor cores take 8 numbers of 16 bits at once; a library may do without other channels, or fill them up.
bool has_tensor_cores_for(const Shape& shape) {
  return !shape.is_of_16_bits() || shape.convolution.math == CUDNN_FMA_MATH || !settings().refuses_first_algorithm() ||
         (shape.filter.in % 8 == 0 && shape.filter.out % 8 == 0);
}

cudnnStatus_t convolve(cudnnHandle_t handle, const Call& call, const Shape& shape, int algorithm, void* workspace,
                       std::size_t bytes, const void* beta) {
  const std::lock_guard hold(machine_lock());
  count(call.name);
  if (algorithm == kRefusedAlgorithm || !has_tensor_cores_for(shape)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (*static_cast<const float*>(beta) != 0) find_fault("cuDNN: a beta that is not modelled");
  if (sticky_error() != cudaSuccess) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!shape.fits()) {
    find_fault(std::string(call.name) + ": shapes that do not fit");
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (call.first.element != call.second.element || call.first.element != call.result.element) {
    find_fault(std::string(call.name) + ": types that do not go together");
    return CUDNN_STATUS_BAD_PARAM;
  }
  for (const Operand& operand : {call.first, call.second, call.result}) {
    if (shape.is_of_16_bits() && reinterpret_cast<std::uintptr_t>(operand.memory) % 16 != 0) {
      find_fault(std::string(call.name) +
                 ": an operand of 16-bit numbers that does not begin at a multiple of 16 bytes");
      return CUDNN_STATUS_BAD_PARAM;
    }
  }
  if (!are_on_device(call.name, {call.first, call.second, call.result}, workspace, bytes) ||
      check_stream(handle->stream) != cudaSuccess) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const Lost lost = shape.convolution.math == CUDNN_FMA_MATH ? Lost::kNone : Lost::kOfTf32;
  give(handle->stream, call.name, [=] {
    const Factors first(call.first.memory, call.first.count, call.first.element, lost);
    const Factors second(call.second.memory, call.second.count, call.second.element, lost);
    spoil_before(workspace, bytes, call.result);
    ResultOfProduct result(const_cast<void*>(call.result.memory), call.result.count, call.result.element);
    call.convolve(shape, first.data(), second.data(), result.data());
    result.store();
  });
  return CUDNN_STATUS_SUCCESS;
}

Element element_of(cudnnDataType_t type) {
  if (type == CUDNN_DATA_BFLOAT16) return Element::kBf16;
  if (type == CUDNN_DATA_HALF) return Element::kHalf;
  if (type != CUDNN_DATA_FLOAT) find_fault("cuDNN: a type that is not modelled");
  return Element::kFloat;
}

template <typename Proposal>
cudnnStatus_t propose(const cudnnConvolutionDescriptor_t convolution, int most, int* count, Proposal* proposals) {
  *count = 0;
  const auto add = [&](int algorithm, cudnnDeterminism_t determinism, cudnnMathType_t math) {
    if (*count == most) return;
    Proposal& proposal = proposals[(*count)++];
    proposal = {};
    proposal.algo = static_cast<decltype(proposal.algo)>(algorithm);
    proposal.status = CUDNN_STATUS_SUCCESS;
    proposal.determinism = determinism;
    proposal.mathType = math;
  };
  const cudnnMathType_t math = convolution->math;
  add(kUndeterminedAlgorithm, CUDNN_NON_DETERMINISTIC, math);
  if (settings().refuses_first_algorithm()) add(kRefusedAlgorithm, CUDNN_DETERMINISTIC, math);
  add(kAlgorithm, CUDNN_DETERMINISTIC, math == CUDNN_DEFAULT_MATH ? CUDNN_TENSOR_OP_MATH : math);
  return CUDNN_STATUS_SUCCESS;
}

template <typename Held>
cudnnStatus_t make(Held** handle) {
  *handle = new Held{};
  return CUDNN_STATUS_SUCCESS;
}

template <typename Held>
cudnnStatus_t drop(Held* handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return make(handle); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return drop(handle); }
size_t cudnnGetVersion() { return 91300; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) { return make(tensor); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) { return drop(tensor); }

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int images, int channels, int height, int width) {
  if (format != CUDNN_TENSOR_NHWC) find_fault("cuDNN: a format that is not modelled");
  *tensor = {images, channels, height, width, element_of(type)};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) { return make(filter); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) { return drop(filter); }

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type, cudnnTensorFormat_t,
                                         int out, int in, int height, int width) {
  *filter = {out, in, height, width, element_of(type)};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) { return make(convolution); }
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) { return drop(convolution); }

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int padding, int, int stride,
                                              int, int, int, cudnnConvolutionMode_t mode, cudnnDataType_t type) {
  if (mode != CUDNN_CROSS_CORRELATION) find_fault("cuDNN: a mode of convolution that is not modelled");
  if (type != CUDNN_DATA_FLOAT) find_fault("cuDNN: sums in a type that is not modelled");
  convolution->padding = padding;
  convolution->stride = stride;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math) {
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}

// The three ways of a convolution, with the descriptors that each call takes in its order.
#define SOFTWARE_GPU_PROPOSALS(way, Proposal, First, Second, Third)                                                 \
  cudnnStatus_t cudnnGetConvolution##way##Algorithm_v7(cudnnHandle_t, const First, const Second,                    \
                                                       const cudnnConvolutionDescriptor_t convolution, const Third, \
                                                       const int most, int* count, Proposal* proposals) {           \
    return propose(convolution, most, count, proposals);                                                            \
  }
#define SOFTWARE_GPU_WORKSPACE(way, Algorithm, First, Second, Third)                                                \
  cudnnStatus_t cudnnGetConvolution##way##WorkspaceSize(cudnnHandle_t, const First, const Second,                   \
                                                        const cudnnConvolutionDescriptor_t, const Third, Algorithm, \
                                                        size_t* bytes) {                                            \
    *bytes = settings().convolution_workspace();                                                                    \
    return CUDNN_STATUS_SUCCESS;                                                                                    \
  }
#define SOFTWARE_GPU_WAY(way, short, First, Second, Third)                               \
  SOFTWARE_GPU_PROPOSALS(way, cudnnConvolution##short##AlgoPerf_t, First, Second, Third) \
  SOFTWARE_GPU_WORKSPACE(way, cudnnConvolution##short##Algo_t, First, Second, Third)

SOFTWARE_GPU_WAY(Forward, Fwd, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t)
SOFTWARE_GPU_WAY(BackwardFilter, BwdFilter, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t)
SOFTWARE_GPU_WAY(BackwardData, BwdData, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t)

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void*, const cudnnTensorDescriptor_t of_x,
                                      const void* x, const cudnnFilterDescriptor_t of_filter, const void* filter,
                                      const cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t bytes,
                                      const void* beta, const cudnnTensorDescriptor_t of_y, void* y) {
  const Shape s{*of_x, *of_y, *of_filter, *convolution};
  const Call call{"cudnnConvolutionForward",
                  convolve_forward,
                  {x, s.x_size(), s.x.element},
                  {filter, s.filter_size(), s.filter.element},
                  {y, s.y_size(), s.y.element}};
  return convolve(handle, call, s, algorithm, workspace, bytes, beta);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void*, const cudnnTensorDescriptor_t of_x,
                                             const void* x, const cudnnTensorDescriptor_t of_y, const void* dy,
                                             const cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, size_t bytes,
                                             const void* beta, const cudnnFilterDescriptor_t of_filter, void* dfilter) {
  const Shape s{*of_x, *of_y, *of_filter, *convolution};
  const Call call{"cudnnConvolutionBackwardFilter",
                  convolve_filter,
                  {x, s.x_size(), s.x.element},
                  {dy, s.y_size(), s.y.element},
                  {dfilter, s.filter_size(), s.filter.element}};
  return convolve(handle, call, s, algorithm, workspace, bytes, beta);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void*, const cudnnFilterDescriptor_t of_filter,
                                           const void* filter, const cudnnTensorDescriptor_t of_y, const void* dy,
                                           const cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace, size_t bytes,
                                           const void* beta, const cudnnTensorDescriptor_t of_x, void* dx) {
  const Shape s{*of_x, *of_y, *of_filter, *convolution};
  const Call call{"cudnnConvolutionBackwardData",
                  convolve_data,
                  {filter, s.filter_size(), s.filter.element},
                  {dy, s.y_size(), s.y.element},
                  {dx, s.x_size(), s.x.element}};
  return convolve(handle, call, s, algorithm, workspace, bytes, beta);
}

}  // extern "C"
