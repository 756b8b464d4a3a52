// The part of cuBLASLt that the product calls.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "tests/software_gpu/library_work.h"
#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/settings.h"
#include "tests/software_gpu/streams.h"

using namespace software_gpu;

namespace {

struct Product {
  cublasComputeType_t type;
  cublasOperation_t of_a, of_b;
  cublasLtEpilogue_t epilogue;
  void* vector;
  cudaDataType vector_type;
};
constexpr auto kTypeOfResult = static_cast<cudaDataType>(-1);  // of a vector, by default

struct Layout {
  std::uint64_t rows, columns;
  std::int64_t stride;
  Element element;

  std::size_t size() const { return rows * columns; }
};

// In bytes, of A, B, C and D.
using Alignment = std::array<std::uint32_t, 4>;

struct Preference {
  std::uint64_t workspace;
  Alignment alignment;
};

struct Algorithm {
  std::uint64_t number;
  Alignment alignment;
  std::uint64_t of_vector;
};

// What cuBLASLt's own types, which are opaque, hold here.
template <typename Held, typename Opaque>
Held& in(Opaque* opaque) {
  static_assert(sizeof(Held) <= sizeof(Opaque));
  return *reinterpret_cast<Held*>(opaque);
}

constexpr std::uint64_t kAlgorithm = 5, kRefusedAlgorithm = 77;

template <typename Value>
cublasStatus_t take(const void* from, std::size_t bytes, Value& value) {
  if (bytes != sizeof(value)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&value, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

bool find_element(cudaDataType type, Element& element) {
  if (type != CUDA_R_32F && type != CUDA_R_16BF && type != CUDA_R_16F) {
    find_fault("cublasLtMatrixLayoutCreate: a type that is not modelled");
    return false;
  }
  element = type == CUDA_R_32F ? Element::kFloat : type == CUDA_R_16BF ? Element::kBf16 : Element::kHalf;
  return true;
}

// Whether types go together (cuBLAS's documentation, cublasLtMatmul: the table of types that are supported).
bool types_fit(const Product& product, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const bool are_floats = a.element == Element::kFloat;
  Element of_vector = d.element;
  const bool fit = a.element == b.element && c.element == d.element &&
                   (d.element == a.element || d.element == Element::kFloat) &&
                   (are_floats || product.type == CUBLAS_COMPUTE_32F) &&
                   (product.vector_type == kTypeOfResult ||
                    (find_element(product.vector_type, of_vector) && of_vector == d.element));
  if (!fit) find_fault("cublasLtMatmul: types that do not go together");
  return fit;
}

// Tensor cores load 16 bytes at once; an epilogue may do without columns that are not whole such parts.
bool fuses_epilogue(const Product& product, std::initializer_list<Layout> matrices) {
  if (product.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return true;
  return settings().fuses_epilogues() && std::ranges::all_of(matrices, [](const Layout& matrix) {
           return matrix.element == Element::kFloat || static_cast<std::size_t>(matrix.stride) * 2 % 16 == 0;
         });
}

bool is_aligned(const void* address, std::uint64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

struct Shape {
  std::size_t rows, columns, inner;
};

bool find_shape(const Product& product, const Layout& a, const Layout& b, const Layout& d, Shape& shape) {
  const bool turns_a = product.of_a == CUBLAS_OP_T, turns_b = product.of_b == CUBLAS_OP_T;
  shape = {.rows = d.rows, .columns = d.columns, .inner = turns_a ? a.rows : a.columns};
  const bool fits = (turns_a ? a.columns : a.rows) == d.rows && (turns_b ? b.rows : b.columns) == d.columns &&
                    (turns_b ? b.columns : b.rows) == shape.inner;
  if (!fits) find_fault("cublasLtMatmul: shapes that do not fit");
  return fits;
}

Lost lost_by(cublasComputeType_t type) { return type == CUBLAS_COMPUTE_32F_FAST_TF32 ? Lost::kOfTf32 : Lost::kNone; }

// All matrices lie column by column.
void add_vector(const Product& product, const Shape& shape, const float* vector, float* d, std::size_t stride) {
  for (std::size_t column = 0; column < shape.columns; ++column) {
    for (std::size_t row = 0; row < shape.rows; ++row) {
      float& value = d[column * stride + row];
      value += vector[row];
      if (product.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) value = std::max(value, 0.0f);
    }
  }
}

void sum_columns(const Product& product, const Shape& shape, const float* b, std::size_t stride, float* sums) {
  for (std::size_t column = 0; column < shape.columns; ++column) {
    double sum = 0;
    for (std::size_t k = 0; k < shape.inner; ++k) {
      sum += product.of_b == CUBLAS_OP_T ? b[k * stride + column] : b[column * stride + k];
    }
    sums[column] = static_cast<float>(sum);
  }
}

std::size_t vector_size(const Product& product, const Shape& shape) {
  if (product.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return 0;
  return product.epilogue == CUBLASLT_EPILOGUE_BGRADB ? shape.columns : shape.rows;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() { return 130000; }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    default:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t type,
                                        cudaDataType_t scale) {
  if ((type != CUBLAS_COMPUTE_32F && type != CUBLAS_COMPUTE_32F_FAST_TF32) || scale != CUDA_R_32F) {
    find_fault("cublasLtMatmulDescCreate: a type that is not modelled");
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  *description = new cublasLtMatmulDescOpaque_t{};
  in<Product>(*description) = {type, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, kTypeOfResult};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t bytes) {
  Product& product = in<Product>(description);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(value, bytes, product.of_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(value, bytes, product.of_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(value, bytes, product.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(value, bytes, product.vector);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return take(value, bytes, product.vector_type);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t stride) {
  Element element{};
  if (!find_element(type, element)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *layout = new cublasLtMatrixLayoutOpaque_t{};
  in<Layout>(*layout) = {rows, columns, stride, element};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t{};
  in<Preference>(*preference).alignment.fill(256);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  auto& [workspace, alignment] = in<Preference>(preference);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return take(value, bytes, workspace);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return take(value, bytes, alignment[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return take(value, bytes, alignment[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return take(value, bytes, alignment[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return take(value, bytes, alignment[3]);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int* returned) {
  const Product& product = in<Product>(description);
  *returned = 0;
  if (!types_fit(product, in<Layout>(a), in<Layout>(b), in<Layout>(c), in<Layout>(d)) ||
      !fuses_epilogue(product, {in<Layout>(a), in<Layout>(b), in<Layout>(d)})) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const auto [workspace, alignment] = in<Preference>(preference);
  const auto vector = reinterpret_cast<std::uintptr_t>(product.vector);
  Shape shape{};
  if (!find_shape(product, in<Layout>(a), in<Layout>(b), in<Layout>(d), shape)) return CUBLAS_STATUS_INVALID_VALUE;
  for (int i = 0; i < std::min(most, 2); ++i) {
    cublasLtMatmulHeuristicResult_t& result = results[(*returned)++];
    result = {};
    result.state = CUBLAS_STATUS_SUCCESS;
    in<Algorithm>(&result.algo) = {settings().refuses_first_algorithm() && i == 0 ? kRefusedAlgorithm : kAlgorithm,
                                   alignment, std::uint64_t{1} << std::countr_zero(vector | 256)};
    result.workspaceSize = std::min<std::size_t>(workspace, std::size_t{1} << 20);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t layout_a, const void* b, cublasLtMatrixLayout_t layout_b,
                              const void* beta, const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t bytes, cudaStream_t stream) {
  const std::lock_guard hold(machine_lock());
  count("cublasLtMatmul");
  const Algorithm chosen = in<const Algorithm>(algorithm);
  if (chosen.number != kAlgorithm) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Product product = in<Product>(description);
  const Layout of_a = in<Layout>(layout_a), of_b = in<Layout>(layout_b), of_d = in<Layout>(layout_d);
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0 || c != d) {
    find_fault("cublasLtMatmul: factors of the result that are not modelled");
  }
  if (sticky_error() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  Shape shape{};
  if (!types_fit(product, of_a, of_b, in<Layout>(layout_c), of_d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!find_shape(product, of_a, of_b, of_d, shape)) return CUBLAS_STATUS_INVALID_VALUE;
  const auto [align_a, align_b, align_c, align_d] = chosen.alignment;
  if (!is_aligned(a, align_a) || !is_aligned(b, align_b) || !is_aligned(c, align_c) || !is_aligned(d, align_d) ||
      !is_aligned(product.vector, chosen.of_vector)) {
    find_fault("cublasLtMatmul: an operand that is not aligned as the algorithm was asked for");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  // Biases, and sums that an epilogue makes, are numbers as the result's are.
  const Operand result{d, of_d.size(), of_d.element};
  const Operand vector{product.vector, vector_size(product, shape), of_d.element};
  const bool are_there =
      are_on_device("cublasLtMatmul", {{a, of_a.size(), of_a.element}, {b, of_b.size(), of_b.element}, result},
                    workspace, bytes) &&
      (vector.count == 0 || are_on_device("cublasLtMatmul", {vector}, nullptr, 0));
  if (!are_there || check_stream(stream) != cudaSuccess) return CUBLAS_STATUS_INVALID_VALUE;
  give(stream, "cublasLtMatmul", [=] {
    const Factors left(a, of_a.size(), of_a.element, lost_by(product.type));
    const Factors right(b, of_b.size(), of_b.element, lost_by(product.type));
    const auto stride_d = static_cast<std::size_t>(of_d.stride), stride_b = static_cast<std::size_t>(of_b.stride);
    spoil_before(workspace, bytes, result);
    ResultOfProduct made(d, result.count, result.element);
    // Column by column, D = op(A) op(B) is, row by row, D' = op(B)' op(A)'.
    multiply(product.of_b == CUBLAS_OP_T, product.of_a == CUBLAS_OP_T, shape.columns, shape.rows, shape.inner,
             right.data(), stride_b, left.data(), static_cast<std::size_t>(of_a.stride), 0, made.data(), stride_d);
    if (product.epilogue == CUBLASLT_EPILOGUE_BIAS || product.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) {
      const Factors bias(vector.memory, vector.count, vector.element, Lost::kNone);
      add_vector(product, shape, bias.data(), made.data(), stride_d);
    }
    if (product.epilogue == CUBLASLT_EPILOGUE_BGRADB) {
      spoil_before(nullptr, 0, vector);
      ResultOfProduct sums(product.vector, vector.count, vector.element);
      sum_columns(product, shape, right.data(), stride_b, sums.data());
      sums.store();
    }
    made.store();
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
