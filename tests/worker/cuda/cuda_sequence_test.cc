// The CUDA backend's operations on sequences against those of the plain loops, and a transformer of them. Kernels of
// our own multiply in float32 whatever the precision.
#include "tests/worker/cuda/cuda_backend_fixture.h"
#include "worker/data/text_form.h"
#include "worker/model.h"

namespace syncopate::worker {
namespace {

constexpr double kLargestGap = 1e-5;  // of the largest element

class CudaSequence : public CudaBackendFixture {
 protected:
  void expect_near(Out actual, const Tensor& expected, const char* what) {
    expect_close(download(In(actual)), expected, kLargestGap, what);
  }

  void expect_embedding_agrees(const EmbeddingShape& s) {
    const std::vector<int> ids = random_labels(s.rows(), s.vocabulary, random_);
    const Tensor tokens = random_tensor(s.vocabulary * s.width, random_);
    const Tensor positions = random_tensor(s.context * s.width, random_);
    const Tensor dy = random_tensor(s.rows() * s.width, random_);
    Tensor y = poisoned(s.rows() * s.width), dtokens = tokens, dpositions = poisoned(s.context * s.width);
    const Out there_y = upload(y), there_dtokens = upload(dtokens), there_dpositions = upload(dpositions);
    const std::span<const int> there_ids = upload(ids);
    reference_->embedding_forward(s, ids, tokens, positions, y);
    reference_->embedding_backward(s, ids, dy, dtokens, dpositions);
    cuda_->embedding_forward(s, there_ids, upload(tokens), upload(positions), there_y);
    cuda_->embedding_backward(s, there_ids, upload(dy), there_dtokens, there_dpositions);
    expect_near(there_y, y, "y");
    expect_near(there_dtokens, dtokens, "dtokens");
    expect_near(there_dpositions, dpositions, "dpositions");
  }

  void expect_layer_norm_agrees(const LayerNormShape& s, bool is_past) {
    const int count = s.rows * s.width;
    const Tensor past = random_tensor(is_past ? count : 0, random_);
    const Tensor x = random_tensor(count, random_), gamma = random_tensor(s.width, random_);
    const Tensor beta = random_tensor(s.width, random_), dy = random_tensor(count, random_);
    Tensor y = poisoned(count), dx = y, moments = poisoned(2 * s.rows), dgamma = poisoned(s.width), dbeta = dgamma;
    const Out there_y = upload(y), there_dx = upload(dx), there_moments = upload(moments);
    const Out there_dgamma = upload(dgamma), there_dbeta = upload(dbeta);
    const In there_x = upload(x), there_gamma = upload(gamma);
    reference_->layer_norm_forward(s, x, gamma, beta, y, moments);
    reference_->layer_norm_backward(s, x, gamma, moments, dy, past, dgamma, dbeta, dx);
    cuda_->layer_norm_forward(s, there_x, there_gamma, upload(beta), there_y, there_moments);
    cuda_->layer_norm_backward(s, there_x, there_gamma, there_moments, upload(dy), upload(past), there_dgamma,
                               there_dbeta, there_dx);
    expect_near(there_y, y, "y");
    expect_near(there_dgamma, dgamma, "dgamma");
    expect_near(there_dbeta, dbeta, "dbeta");
    expect_near(there_dx, dx, "dx");
  }

  void expect_attention_agrees(const AttentionShape& s) {
    const int count = s.rows() * s.width;
    const Tensor qkv = random_tensor(3 * count, random_), dy = random_tensor(count, random_);
    Tensor y = poisoned(count), p = poisoned(static_cast<int>(s.probabilities())), dqkv = poisoned(3 * count);
    const Out there_y = upload(y), there_dqkv = upload(dqkv);
    const Out there_storage = upload(poisoned(static_cast<int>(cuda_->attention_storage(s))));
    const In there_qkv = upload(qkv);
    reference_->attention_forward(s, qkv, y, p);
    cuda_->attention_forward(s, there_qkv, there_y, there_storage);
    expect_near(there_y, y, "y");
    reference_->attention_backward(s, qkv, y, dy, p, dqkv);
    cuda_->attention_backward(s, there_qkv, there_y, upload(dy), there_storage, there_dqkv);
    expect_near(there_dqkv, dqkv, "dqkv");
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
  const Tensor dy = random_tensor(5000, random_);
  Tensor y = poisoned(5000), dx = y;
  const Out there_y = upload(y), there_dx = upload(dx);
  const In there_x = upload(x);
  reference_->gelu_forward(x, y);
  reference_->gelu_backward(x, dy, dx);
  cuda_->gelu_forward(there_x, there_y);
  cuda_->gelu_backward(there_x, upload(dy), there_dx);
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
  const In x = upload(random_tensor(count, random_)), dy = upload(random_tensor(count, random_));
  const In gamma = upload(random_tensor(norm.width, random_)), qkv = upload(random_tensor(3 * values, random_));
  const auto room = [&](int size) { return upload(Tensor(static_cast<std::size_t>(size))); };
  const auto results = [&] {
    const Out tokens = room(embedding.vocabulary * embedding.width),
              positions = room(embedding.context * embedding.width);
    cuda_->embedding_backward(embedding, ids, dy, tokens, positions);
    const Out y = room(count), moments = room(2 * norm.rows), dgamma = room(norm.width), dbeta = room(norm.width);
    cuda_->layer_norm_forward(norm, x, gamma, gamma, y, moments);
    cuda_->layer_norm_backward(norm, x, gamma, moments, dy, {}, dgamma, dbeta, y);
    const Out attended = room(values), dqkv = room(3 * values);
    const Out storage = room(static_cast<int>(cuda_->attention_storage(attention)));
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
  const Tensor x = random_tensor(640, random_), w = random_tensor(1536, random_), dy = random_tensor(960, random_);
  Tensor y = poisoned(960), dw = poisoned(1536), dx = poisoned(640);
  const Out there_y = upload(y), there_dw = upload(dw), there_dx = upload(dx);
  const In there_x = upload(x), there_w = upload(w);
  reference_->dense_forward(s, x, w, {}, y);
  reference_->dense_backward(s, x, w, dy, dw, {}, dx);
  cuda_->dense_forward(s, there_x, there_w, {}, there_y);
  cuda_->dense_backward(s, there_x, there_w, upload(dy), there_dw, {}, there_dx);
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
  const std::vector<int> ids = random_labels(kBatch * kContext, kCharacters, random_);
  const std::vector<int> labels = random_labels(kBatch * kContext, kCharacters, random_);
  Tensor expected(weights.size());
  plain->forward(weights, {{}, labels, ids});
  plain->backward(weights, expected, [](std::size_t) {});
  const In there = upload(weights);
  const Out gradients = upload(Tensor(weights.size()));
  fast->forward(there, {{}, upload(labels), upload(ids)});
  fast->backward(there, gradients, [](std::size_t) {});
  EXPECT_NEAR(fast->loss().loss, plain->loss().loss, tolerance_of(GetParam()));
  expect_close_on_device(gradients, expected, "gradients");
}

INSTANTIATE_TEST_SUITE_P(, CudaSequence, testing::Values(Precision::kFp32, Precision::kTf32), name_of_case);

}  // namespace
}  // namespace syncopate::worker
