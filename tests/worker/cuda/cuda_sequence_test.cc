// The CUDA backend's operations on sequences against those of the plain loops, and a transformer of them. Kernels of
// our own compute in float32 whatever the precision.
#include <cmath>

#include "tests/worker/cuda/cuda_backend_fixture.h"
#include "worker/data/text_form.h"
#include "worker/model.h"

namespace syncopate::worker {
namespace {

constexpr double kLargestGap = 1e-5;  // of the largest element

class CudaSequence : public CudaBackendFixture {
 protected:
  void expect_near(In actual, const Tensor& expected, const char* what, double gap = kLargestGap) {
    expect_close_on_device(actual, expected, what, gap);
  }

  // How far apart they are, relative to the expected's length.
  static double distance(In actual, In expected) {
    double apart = 0, length = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      apart += std::pow(double{actual[i]} - double{expected[i]}, 2);
      length += std::pow(double{expected[i]}, 2);
    }
    return std::sqrt(apart / length);
  }

  void expect_embedding_agrees(const EmbeddingShape& s) {
    const std::vector<int> ids = random_labels(s.rows(), s.vocabulary, random_);
    const Tensor tokens = random_values(s.vocabulary * s.width), positions = random_values(s.context * s.width);
    const Tensor dy = random_values(s.rows() * s.width);
    Tensor y = poisoned(s.rows() * s.width), dtokens = tokens, dpositions = poisoned(s.context * s.width);
    const Out there_y = tensor_of(y), there_dtokens = tensor_of(dtokens), there_dpositions = tensor_of(dpositions);
    const std::span<const int> there_ids = upload(ids);
    reference_->embedding_forward(s, ids, tokens, positions, y);
    reference_->embedding_backward(s, ids, dy, dtokens, dpositions);
    cuda_->embedding_forward(s, there_ids, tensor_of(tokens), tensor_of(positions), there_y);
    cuda_->embedding_backward(s, there_ids, tensor_of(dy), there_dtokens, there_dpositions);
    expect_near(there_y, y, "y");
    expect_near(there_dtokens, dtokens, "dtokens");
    expect_near(there_dpositions, dpositions, "dpositions");
  }

  void expect_layer_norm_agrees(const LayerNormShape& s, bool is_past) {
    const int count = s.rows * s.width;
    const Tensor past = random_values(is_past ? count : 0);
    const Tensor x = random_values(count), gamma = random_values(s.width);
    const Tensor beta = random_values(s.width), dy = random_values(count);
    Tensor y = poisoned(count), dx = y, moments = poisoned(2 * s.rows), dgamma = poisoned(s.width), dbeta = dgamma;
    const Out there_y = tensor_of(y), there_dx = tensor_of(dx);
    const Floats there_moments = upload(moments);
    const Out there_dgamma = tensor_of(dgamma), there_dbeta = tensor_of(dbeta);
    const In there_x = tensor_of(x), there_gamma = tensor_of(gamma);
    reference_->layer_norm_forward(s, x, gamma, beta, y, moments);
    reference_->layer_norm_backward(s, x, gamma, moments, dy, past, dgamma, dbeta, dx);
    cuda_->layer_norm_forward(s, there_x, there_gamma, tensor_of(beta), there_y, there_moments);
    cuda_->layer_norm_backward(s, there_x, there_gamma, there_moments, tensor_of(dy), tensor_of(past), there_dgamma,
                               there_dbeta, there_dx);
    expect_near(there_y, y, "y");
    expect_near(there_moments, moments, "moments");
    expect_near(there_dgamma, dgamma, "dgamma");
    expect_near(there_dbeta, dbeta, "dbeta");
    expect_near(there_dx, dx, "dx");
  }

  void expect_attention_agrees(const AttentionShape& s) {
    const int count = s.rows() * s.width;
    const Tensor qkv = random_values(3 * count), dy = random_values(count);
    Tensor y = poisoned(count), p = poisoned(static_cast<int>(s.probabilities())), dqkv = poisoned(3 * count);
    const Out there_y = tensor_of(y), there_dqkv = tensor_of(dqkv);
    const Floats there_storage = upload(poisoned(static_cast<int>(cuda_->attention_storage(s))));
    const In there_qkv = tensor_of(qkv);
    reference_->attention_forward(s, qkv, y, p);
    cuda_->attention_forward(s, there_qkv, there_y, there_storage);
    expect_near(there_y, y, "y");
    reference_->attention_backward(s, qkv, y, dy, p, dqkv);
    cuda_->attention_backward(s, there_qkv, there_y, tensor_of(dy), there_storage, there_dqkv);
    // Backward takes y as it is stored.
    expect_near(there_dqkv, dqkv, "dqkv", kLargestGap + rounding_of(GetParam()));
  }
};

TEST_P(CudaSequence, EmbeddingAgreesWithPlainLoops) {
  for (const EmbeddingShape& s : {EmbeddingShape{1, 1, 1, 1}, {3, 5, 7, 4}, {8, 64, 128, 256}, {40, 64, 33, 5}}) {
    expect_embedding_agrees(s);
  }
}

TEST_P(CudaSequence, LayerNormAgreesWithPlainLoops) {
  for (const LayerNormShape& s : {LayerNormShape{1, 1}, {3, 7}, {5, 33}, {512, 128}, {2, 1000}}) {
    SCOPED_TRACE(testing::Message() << s.rows << " x " << s.width);
    for (const bool is_past : {false, true}) expect_layer_norm_agrees(s, is_past);
  }
}

TEST_P(CudaSequence, GeluAgreesWithPlainLoops) {
  Tensor x = random_tensor(5000, random_);
  for (float& value : x) value *= 5;
  x = rounded(x);
  const Tensor dy = random_values(5000);
  Tensor y = poisoned(5000), dx = y;
  const Out there_y = tensor_of(y), there_dx = tensor_of(dx);
  const In there_x = tensor_of(x);
  reference_->gelu_forward(x, y);
  reference_->gelu_backward(x, dy, dx);
  cuda_->gelu_forward(there_x, there_y);
  cuda_->gelu_backward(there_x, tensor_of(dy), there_dx);
  expect_near(there_y, y, "y");
  expect_near(there_dx, dx, "dx");
}

TEST_P(CudaSequence, AttentionAgreesWithPlainLoops) {
  for (const AttentionShape& s :
       {AttentionShape{1, 1, 1, 1}, {2, 3, 1, 5}, {1, 33, 3, 51}, {8, 64, 4, 128}, {1, 100, 2, 200}, {1, 70, 1, 33}}) {
    SCOPED_TRACE(testing::Message() << s.batch << " x " << s.context << ", " << s.heads << " heads, width " << s.width);
    expect_attention_agrees(s);
  }
}

TEST_P(CudaSequence, GivesTheSameBitsAgain) {
  const EmbeddingShape embedding{40, 64, 20, 7};  // more rows than are sorted at once
  const LayerNormShape norm{2560, 20};
  const AttentionShape attention{2, 70, 2, 40};
  const int count = embedding.rows() * embedding.width, values = attention.rows() * attention.width;
  const std::span<const int> ids = upload(random_labels(embedding.rows(), embedding.vocabulary, random_));
  const In x = tensor_of(random_values(count)), dy = tensor_of(random_values(count));
  const In gamma = tensor_of(random_values(norm.width)), qkv = tensor_of(random_values(3 * values));
  const Floats moments = upload(Tensor(2 * static_cast<std::size_t>(norm.rows)));
  const Floats storage = upload(Tensor(cuda_->attention_storage(attention)));
  const auto room = [&](int size) { return tensor_of(Tensor(static_cast<std::size_t>(size))); };
  const auto results = [&] {
    const Out tokens = room(embedding.vocabulary * embedding.width),
              positions = room(embedding.context * embedding.width);
    cuda_->embedding_backward(embedding, ids, dy, tokens, positions);
    const Out y = room(count), dgamma = room(norm.width), dbeta = room(norm.width);
    cuda_->layer_norm_forward(norm, x, gamma, gamma, y, moments);
    cuda_->layer_norm_backward(norm, x, gamma, moments, dy, {}, dgamma, dbeta, y);
    const Out attended = room(values), dqkv = room(3 * values);
    cuda_->attention_forward(attention, qkv, attended, storage);
    cuda_->attention_backward(attention, qkv, attended, dy.first(values), storage, dqkv);
    return std::vector<Tensor>{download(In(tokens)), download(In(positions)), download(In(dgamma)),
                               download(In(dbeta)),  download(In(y)),         download(In(dqkv))};
  };
  const std::vector<Tensor> first = results();
  for (int round = 0; round < 3; ++round) EXPECT_EQ(results(), first);
}

TEST_P(CudaSequence, DenseWithoutABiasAgreesWithPlainLoops) {
  const DenseShape s{.batch = 20, .in = 32, .out = 48, .bias = false};
  const Tensor x = random_values(640), w = random_values(1536), dy = random_values(960);
  Tensor y = poisoned(960), dw = poisoned(1536), dx = poisoned(640);
  const Out there_y = tensor_of(y), there_dw = tensor_of(dw), there_dx = tensor_of(dx);
  const In there_x = tensor_of(x), there_w = tensor_of(w);
  reference_->dense_forward(s, x, w, {}, y);
  reference_->dense_backward(s, x, w, dy, dw, {}, dx);
  cuda_->dense_forward(s, there_x, there_w, {}, there_y);
  cuda_->dense_backward(s, there_x, there_w, tensor_of(dy), there_dw, {}, there_dx);
  expect_close_on_device(there_y, y, "y");
  expect_close_on_device(there_dw, dw, "dw");
  expect_close_on_device(there_dx, dx, "dx");
}

TEST_P(CudaSequence, GptGivesTheSameAsOnPlainLoops) {
  constexpr int kBatch = 4, kContext = 16, kCharacters = 32;
  const SampleForm form = form_of_text(kContext, kCharacters);
  const auto plain = std::move(*make_model("gpt:2-2-32", form, kBatch, *reference_));
  const auto fast = std::move(*make_model("gpt:2-2-32", form, kBatch, *cuda_));
  Tensor weights(plain->layout().size());
  plain->initialize(3, weights);
  weights = rounded(weights);
  const std::vector<int> ids = random_labels(kBatch * kContext, kCharacters, random_);
  const std::vector<int> labels = random_labels(kBatch * kContext, kCharacters, random_);
  Tensor expected(weights.size());
  plain->forward(weights, {{}, labels, ids});
  plain->backward(weights, expected, [](std::size_t) {});
  // As where float16 is trained in, whose smallest numbers are larger than some gradients.
  const float factor = rounding_of(GetParam()) > 0 ? 1024 : 1;
  cuda_->scale_gradients_by(upload(Tensor{factor}));
  const In there = tensor_of(weights);
  const Out gradients = tensor_of(Tensor(weights.size()));
  fast->forward(there, {{}, upload(labels), upload(ids)});
  fast->backward(there, gradients, [](std::size_t) {});
  EXPECT_NEAR(fast->loss().loss, plain->loss().loss, tolerance_of(GetParam()));
  Tensor actual = download(In(gradients));
  for (float& gradient : actual) gradient /= factor;
  for (const TensorSpec& tensor : plain->layout().tensors()) {
    // What is stored is rounded in each of some layers.
    EXPECT_LT(distance(slice(In(actual), tensor.range), slice(In(expected), tensor.range)),
              tolerance_of(GetParam()) + 4 * rounding_of(GetParam()))
        << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(, CudaSequence,
                         testing::Values(Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16),
                         name_of_case);

}  // namespace
}  // namespace syncopate::worker
