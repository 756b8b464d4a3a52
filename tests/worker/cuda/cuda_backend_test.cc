// The CUDA backend's results against those of the plain loops, over shapes that fill vectors and tiles and shapes that
// do not. Outputs hold NaN before each call.
#include <cmath>
#include <cstring>

#include "common/sync_strategy.h"
#include "tests/worker/cuda/cuda_backend_fixture.h"

namespace syncopate::worker {
namespace {

class CudaBackend : public CudaBackendFixture {
 protected:
  struct Gradients {
    Tensor y, dw, db, dx;
  };

  // Inputs of a layer, on both sides.
  struct Operands {
    Tensor x, w, b, dy;
    In on_device_x, on_device_w, on_device_b, on_device_dy;
  };
  Operands random_operands(int x, int w, int b, int dy) {
    Operands o{random_values(x), random_values(w), random_values(b), random_values(dy)};
    o.on_device_x = tensor_of(o.x), o.on_device_w = tensor_of(o.w);
    o.on_device_b = tensor_of(o.b), o.on_device_dy = tensor_of(o.dy);
    return o;
  }

  // Layers, on any backend.
  struct Dense {
    DenseShape shape;
    void forward(ComputeBackend& on, In x, In w, In b, Out y) const { on.dense_forward(shape, x, w, b, y); }
    void backward(ComputeBackend& on, In x, In w, In dy, Out dw, Out db, Out dx) const {
      on.dense_backward(shape, x, w, dy, dw, db, dx);
    }
  };
  struct Conv {
    ConvShape shape;
    void forward(ComputeBackend& on, In x, In w, In b, Out y) const { on.conv2d_forward(shape, x, w, b, y); }
    void backward(ComputeBackend& on, In x, In w, In dy, Out dw, Out db, Out dx) const {
      on.conv2d_backward(shape, x, w, dy, dw, db, dx);
    }
  };

  static Gradients room_for(const Operands& o, bool with_dx) {
    const auto size = [](const Tensor& tensor) { return static_cast<int>(tensor.size()); };
    return {poisoned(size(o.dy)), poisoned(size(o.w)), poisoned(size(o.b)), poisoned(with_dx ? size(o.x) : 0)};
  }

  Gradients on_device(const auto& layer, const Operands& o, bool with_dx) {
    const Gradients room = room_for(o, with_dx);
    const Out y = tensor_of(room.y), dw = tensor_of(room.dw), db = tensor_of(room.db), dx = tensor_of(room.dx);
    layer.forward(*cuda_, o.on_device_x, o.on_device_w, o.on_device_b, y);
    layer.backward(*cuda_, o.on_device_x, o.on_device_w, o.on_device_dy, dw, db, dx);
    EXPECT_TRUE(cuda_->status().ok()) << cuda_->status().message();
    return {download(In(y)), download(In(dw)), download(In(db)), download(In(dx))};
  }

  // With the input's gradient and without.
  void expect_agrees(const auto& layer, const Operands& o) {
    Gradients expected = room_for(o, true);
    layer.forward(*reference_, o.x, o.w, o.b, expected.y);
    layer.backward(*reference_, o.x, o.w, o.dy, expected.dw, expected.db, expected.dx);
    for (const bool with_dx : {true, false}) {
      const Gradients actual = on_device(layer, o, with_dx);
      const double tolerance = tolerance_of(GetParam()), rounding = rounding_of(GetParam());
      expect_close(actual.y, expected.y, tolerance, "y", rounding);
      expect_close(actual.dw, expected.dw, tolerance, "dw", rounding);
      expect_close(actual.db, expected.db, tolerance, "db", rounding);
      if (with_dx) expect_close(actual.dx, expected.dx, tolerance, "dx", rounding);
    }
  }

  Operands dense_operands(const DenseShape& s) {
    return random_operands(s.batch * s.in, s.out * s.in, s.out, s.batch * s.out);
  }
  void expect_agrees(const DenseShape& s) { expect_agrees(Dense{s}, dense_operands(s)); }
  Operands conv_operands(const ConvShape& s) {
    return random_operands(s.batch * s.height * s.width * s.in, s.out * s.kernel * s.kernel * s.in, s.bias ? s.out : 0,
                           s.batch * s.out_height() * s.out_width() * s.out);
  }
  void expect_agrees(const ConvShape& s) { expect_agrees(Conv{s}, conv_operands(s)); }

  void expect_pool_agrees(const PoolShape& s) {
    const int inputs = s.batch * s.height * s.width * s.channels;
    const int outputs = s.batch * s.out_height() * s.out_width() * s.channels;
    Tensor x = random_tensor(inputs, random_);
    for (float& value : x) value = std::round(value * 4);  // many equals
    const Tensor dy = random_values(outputs);
    Tensor expected_y = poisoned(outputs), expected_dx = poisoned(inputs);
    std::vector<unsigned char> expected_index(static_cast<std::size_t>(outputs), 255);
    const Out y = tensor_of(expected_y), dx = tensor_of(expected_dx);
    const std::span<unsigned char> index = upload(expected_index);

    reference_->max_pool_forward(s, x, expected_y, expected_index);
    reference_->max_pool_backward(s, dy, expected_index, expected_dx);
    cuda_->max_pool_forward(s, tensor_of(x), y, index);
    cuda_->max_pool_backward(s, tensor_of(dy), index, dx);
    expect_equal_on_device(y, expected_y, "y");
    EXPECT_EQ(download(std::span<const unsigned char>(index)), expected_index);
    expect_equal_on_device(dx, expected_dx, "dx");
  }

  // `levels`: how many values a logit may have; few make equals.
  void expect_softmax_agrees(int batch, int classes, float magnitude, int levels) {
    SCOPED_TRACE(testing::Message() << batch << " x " << classes << " of magnitude " << magnitude);
    Tensor logits = random_tensor(batch * classes, random_);
    const float steps = static_cast<float>(levels);
    for (float& logit : logits) logit = std::round(logit * steps) / steps * magnitude;
    logits = rounded(logits);
    const std::vector<int> labels = random_labels(batch, classes, random_);
    Tensor expected = poisoned(batch * classes);
    const Out gradient = tensor_of(expected);
    const In there = tensor_of(logits);
    const std::span<const int> labels_there = upload(labels);

    reference_->softmax_cross_entropy(batch, classes, logits, labels, 1, expected);
    const LossAndCorrect result = reference_->loss();
    cuda_->softmax_cross_entropy(batch, classes, there, labels_there, 1, gradient);
    EXPECT_NEAR(cuda_->loss().loss, result.loss, 2e-6 * (1 + result.loss));
    EXPECT_EQ(cuda_->loss().correct, result.correct);
    expect_close_on_device(gradient, expected, "dlogits", 2e-6 / batch);

    cuda_->softmax_cross_entropy(batch, classes, there, labels_there, 1, {});
    EXPECT_NEAR(cuda_->loss().loss, result.loss, 2e-6 * (1 + result.loss));
    EXPECT_EQ(cuda_->loss().correct, result.correct);
  }
};

TEST_P(CudaBackend, DenseAgreesWithPlainLoops) {
  const DenseShape shapes[] = {{1, 1, 1},     {1, 7, 3},     {3, 16, 16},    {5, 17, 10},    {32, 64, 10},
                               {33, 100, 48}, {64, 10, 33},  {7, 784, 31},   {64, 784, 256}, {64, 256, 10},
                               {256, 10, 10}, {1000, 33, 3}, {64, 1024, 512}};
  for (const DenseShape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.batch << " x " << shape.in << " -> " << shape.out);
    for (const bool relu : {false, true}) expect_agrees(DenseShape{shape.batch, shape.in, shape.out, relu});
  }
}

TEST_P(CudaBackend, DenseTakesTensorsAsTheyLieInAnArena) {
  // Slices that begin at multiples of 64 bytes, not 256.
  const DenseShape s{64, 48, 10, true};
  const Tensor arena = random_values(16 + 480 + 16), x = random_values(64 * 48);
  const Tensor w(arena.begin() + 16, arena.begin() + 16 + 480), b(arena.begin() + 496, arena.begin() + 506);
  Tensor y = poisoned(64 * 10);
  const Out there = tensor_of(y);
  const In arena_there = tensor_of(arena);
  reference_->dense_forward(s, x, w, b, y);
  cuda_->dense_forward(s, tensor_of(x), arena_there.subspan(16, 480), arena_there.subspan(496, 10), there);
  expect_close_on_device(there, y, "y");
}

TEST_P(CudaBackend, Conv2dAgreesWithPlainLoops) {
  const ConvShape shapes[] = {{1, 5, 5, 1, 1, 5},
                              {2, 6, 9, 1, 3, 3},
                              {1, 7, 6, 2, 5, 1},
                              {3, 9, 8, 3, 7, 5},
                              {2, 28, 28, 1, 32, 5},
                              {3, 12, 12, 32, 64, 5},
                              {2, 14, 14, 3, 32, 5},
                              {5, 8, 8, 17, 33, 3},
                              {32, 28, 28, 1, 32, 5},
                              {32, 12, 12, 32, 64, 5},
                              {2, 7, 8, 3, 5, 3, 1, 1},
                              {2, 8, 7, 16, 32, 3, 2, 1, false},
                              {32, 32, 32, 16, 16, 3, 1, 1, false}};
  for (const ConvShape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.batch << " x " << s.height << "x" << s.width << "x" << s.in << " -> " << s.out
                                    << ", kernel " << s.kernel << ", stride " << s.stride << ", padding " << s.padding);
    expect_agrees(s);
  }
}

TEST_P(CudaBackend, MaxPoolAgreesWithPlainLoopsAlsoAmongEqualsAndAtARest) {
  const PoolShape shapes[] = {{1, 2, 2, 1, 2, 2},       {3, 8, 8, 32, 2, 2},   {2, 7, 5, 3, 2, 2},
                              {2, 9, 10, 17, 3, 3},     {1, 4, 4, 5, 1, 1},    {1, 1, 1, 3, 2, 2},
                              {4, 24, 24, 33, 2, 2},    {64, 8, 8, 64, 2, 2},  {1, 16, 16, 2, 16, 16},
                              {2, 16, 15, 33, 3, 2, 1}, {1, 1, 1, 4, 3, 2, 1}, {2, 9, 8, 5, 3, 1, 2},
                              {1, 10, 11, 3, 2, 3}};
  for (const PoolShape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.batch << " x " << s.height << "x" << s.width << "x" << s.channels << " by "
                                    << s.size << " every " << s.stride << " from " << -s.padding);
    expect_pool_agrees(s);
  }
}

TEST_P(CudaBackend, ReluAgreesWithPlainLoops) {
  for (int count : {0, 1, 255, 256, 257, 1000, 3'000'000}) {
    Tensor y = random_values(count), dy = random_values(count);
    const Out y_there = tensor_of(y), dy_there = tensor_of(dy);
    reference_->relu_forward(y);
    reference_->relu_backward(y, dy);
    cuda_->relu_forward(y_there);
    cuda_->relu_backward(y_there, dy_there);
    expect_equal_on_device(y_there, y, "y");
    expect_equal_on_device(dy_there, dy, "dy");
  }
}

TEST_P(CudaBackend, BiasAgreesWithPlainLoops) {
  const BiasShape shapes[] = {{1, 1}, {3, 5}, {700, 32}, {20000, 3}, {129, 100}, {2, 9000}};
  for (const BiasShape& shape : shapes) {
    for (const bool relu : {false, true}) {
      const BiasShape s{shape.rows, shape.columns, relu};
      SCOPED_TRACE(testing::Message() << s.rows << " x " << s.columns << (relu ? ", relu" : ""));
      const Tensor b = random_values(s.columns);
      Tensor y = random_values(s.rows * s.columns), dy = random_values(s.rows * s.columns);
      Tensor db = poisoned(s.columns);
      const Out there_y = tensor_of(y), there_dy = tensor_of(dy), there_db = tensor_of(db);
      reference_->bias_forward(s, b, y);
      reference_->bias_backward(s, y, dy, db);
      cuda_->bias_forward(s, tensor_of(b), there_y);
      cuda_->bias_backward(s, there_y, there_dy, there_db);
      expect_equal_on_device(there_y, y, "y");
      expect_equal_on_device(there_dy, dy, "dy");
      expect_close_on_device(there_db, db, "db", tolerance_of(Precision::kFp32));
    }
  }
}

TEST_P(CudaBackend, AddsAsPlainLoopsDo) {
  for (int count : {0, 1, 255, 256, 257, 1000, 3'000'000}) {
    const Tensor x = random_values(count);
    Tensor y = random_values(count);
    const Out there = tensor_of(y);
    reference_->add(x, y);
    cuda_->add(tensor_of(x), there);
    expect_equal_on_device(there, y, "y");
  }
}

TEST_P(CudaBackend, SoftmaxCrossEntropyAgreesWithPlainLoopsAlsoForLargeLogits) {
  for (float magnitude : {1.0f, 100.0f, 10000.0f}) {
    for (int batch : {1, 3, 64, 1000}) expect_softmax_agrees(batch, 10, magnitude, 1 << 20);
  }
}

TEST_P(CudaBackend, SoftmaxCrossEntropyTakesAnyNumberOfClassesAndTheFirstOfEqualLogits) {
  for (int classes : {1, 2, 31, 32, 33, 1000}) expect_softmax_agrees(65, classes, 1, 2);
}

TEST_P(CudaBackend, SquaredErrorAgreesWithPlainLoops) {
  for (int batch : {1, 255, 256, 1000}) {
    const Tensor outputs = random_values(batch), targets = random_tensor(batch, random_);
    const std::vector<int> labels(static_cast<std::size_t>(batch));
    Tensor expected = poisoned(batch);
    const Out gradient = tensor_of(expected);
    reference_->squared_error(outputs, targets, labels, 1, expected);
    cuda_->squared_error(tensor_of(outputs), upload(targets), upload(labels), 1, gradient);
    EXPECT_NEAR(cuda_->loss().loss, reference_->loss().loss, 2e-6);
    EXPECT_EQ(cuda_->loss().correct, 0);
    expect_close_on_device(gradient, expected, "doutputs", 2e-6 / batch);
  }
}

TEST_P(CudaBackend, ScalesTheGradientOfALossAndNotItsRecord) {
  const int batch = 33, classes = 10;
  const Tensor logits = random_values(batch * classes), outputs = random_values(batch);
  const Tensor targets = random_tensor(batch, random_);
  const std::vector<int> labels = random_labels(batch, classes, random_);
  const std::span<const int> labels_there = upload(labels);
  const ConstFloats targets_there = upload(targets);
  Tensor of_logits = poisoned(batch * classes), of_outputs = poisoned(batch);
  reference_->softmax_cross_entropy(batch, classes, logits, labels, 1, of_logits);
  const double cross_entropy = reference_->loss().loss;
  reference_->squared_error(outputs, targets, labels, 1, of_outputs);
  const double error = reference_->loss().loss;

  const Floats factor = upload(Tensor{1});
  cuda_->scale_gradients_by(factor);
  for (const float value : {1.0f, 4096.0f, 0.25f}) {  // which changes where it lies
    cuda_->upload({&value, 1}, factor);
    const Out dlogits = tensor_of(poisoned(batch * classes)), doutputs = tensor_of(poisoned(batch));
    const auto scaled = [&](Tensor gradient) {
      for (float& element : gradient) element *= value;
      return gradient;
    };
    cuda_->softmax_cross_entropy(batch, classes, tensor_of(logits), labels_there, 1, dlogits);
    EXPECT_NEAR(cuda_->loss().loss, cross_entropy, 1e-5);
    expect_close_on_device(dlogits, scaled(of_logits), "dlogits", 2e-6 / batch * value);
    cuda_->squared_error(tensor_of(outputs), targets_there, labels_there, 1, doutputs);
    EXPECT_NEAR(cuda_->loss().loss, error, 1e-5);
    expect_close_on_device(doutputs, scaled(of_outputs), "doutputs", 2e-6 / batch * value);
  }
}

// A sample that is almost right: its gradient is about 4e-9, and a float16's smallest number 6e-8.
TEST_P(CudaBackend, KeepsAScaledGradientThatWouldVanishInFloat16) {
  const int batch = 64, classes = 2;
  Tensor logits(batch * classes);
  for (std::size_t i = 0; i < logits.size(); i += classes) logits[i] = 15;
  const std::vector<int> labels(batch);
  Tensor expected = poisoned(batch * classes);
  reference_->softmax_cross_entropy(batch, classes, logits, labels, 1, expected);
  const auto wrong_class = [&] {
    const Out gradient = tensor_of(poisoned(batch * classes));
    cuda_->softmax_cross_entropy(batch, classes, tensor_of(logits), upload(labels), 1, gradient);
    return download(In(gradient))[1];
  };
  ASSERT_GT(expected[1], 1e-9);
  EXPECT_EQ(wrong_class() == 0, GetParam() == Precision::kFp16);
  cuda_->scale_gradients_by(upload(Tensor{65536}));
  EXPECT_NEAR(wrong_class() / 65536, expected[1], 0.01 * expected[1]);
}

TEST_P(CudaBackend, GivesTheSameBitsAgain) {
  const Dense dense{{64, 784, 256, true}};
  const Operands of_dense = dense_operands(dense.shape);
  const Conv conv{{32, 12, 12, 32, 64, 5}};
  const Operands of_conv = conv_operands(conv.shape);
  const Gradients first = on_device(dense, of_dense, true), first_conv = on_device(conv, of_conv, true);
  for (int round = 0; round < 3; ++round) {
    const Gradients again = on_device(dense, of_dense, true), again_conv = on_device(conv, of_conv, true);
    for (const auto part : {&Gradients::y, &Gradients::dw, &Gradients::db, &Gradients::dx}) {
      EXPECT_EQ(again.*part, first.*part);
      EXPECT_EQ(again_conv.*part, first_conv.*part);
    }
  }
}

TEST_P(CudaBackend, UseOfOneShapeDoesNotDisturbAnother) {
  for (int round = 0; round < 2; ++round) {
    expect_agrees(DenseShape{4, 20, 10});
    expect_agrees(DenseShape{5, 20, 10});
    expect_agrees(ConvShape{2, 8, 8, 16, 16, 3});
    expect_agrees(ConvShape{3, 8, 8, 16, 16, 3});
  }
}

TEST_P(CudaBackend, MovesTensorsBetweenHostAndDevice) {
  for (int count : {1, 1000, 2'000'000, 3}) {
    const Tensor values = random_tensor(count, random_);
    const Out there = cuda_->allocate_floats(values.size());
    ASSERT_EQ(there.size(), values.size());
    EXPECT_EQ(cuda_->host_view(there)[0], 0);  // allocated as zeros
    cuda_->upload(values, there);
    const In view = cuda_->host_view(there);
    ASSERT_EQ(view.size(), values.size());
    EXPECT_EQ(std::memcmp(view.data(), values.data(), view.size_bytes()), 0);
  }
}

TEST_P(CudaBackend, RoundsWhatIsMovedToATensorOfItsType) {
  const Tensor values = random_tensor(100'000, random_), there = rounded(values);
  EXPECT_EQ(there == values, rounding_of(GetParam()) == 0);
  EXPECT_EQ(rounded(there), there);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(there[i], values[i], rounding_of(GetParam()) * std::abs(values[i]) + 0x1p-25);
  }
}

TEST_P(CudaBackend, MovesTwoTensorsOneAfterTheOther) {
  const Tensor first = random_tensor(1000, random_), second = random_tensor(1000, random_);
  const Out first_there = cuda_->allocate_floats(first.size()), second_there = cuda_->allocate_floats(second.size());
  cuda_->upload(first, first_there);
  cuda_->upload(second, second_there);
  for (const auto& [there, values] : {std::pair(first_there, &first), std::pair(second_there, &second)}) {
    EXPECT_EQ(std::memcmp(cuda_->host_view(there).data(), values->data(), there.size_bytes()), 0);
  }
}

TEST_P(CudaBackend, TakesTheTimeOfAStepsPhases) {
  PhaseTimer& timer = *cuda_->phase_timer();
  EXPECT_FALSE((*timer.times(0)).has_value());
  const Out y = tensor_of(random_tensor(100'000, random_)), dy = tensor_of(random_tensor(100'000, random_));
  const auto give_step = [&](std::int64_t step) {
    cuda_->begin_turn(turn_of(step));
    timer.begin(Phase::kForward);
    cuda_->relu_forward(y);
    timer.begin(Phase::kBackward);
    for (int i = 0; i < 10; ++i) cuda_->relu_backward(y, dy);
    EXPECT_FALSE(step < kStepsUnderWay && (*timer.times(turn_of(step))).has_value());
    timer.begin(Phase::kSynchronise);
    cuda_->add(dy, y);
    timer.end_step();
  };
  const auto check = [&](std::int64_t step) {
    const std::optional<DeviceTimes> times = *timer.times(turn_of(step));
    ASSERT_TRUE(times.has_value());
    EXPECT_GT(times->forward, Duration::zero());
    EXPECT_GT(times->backward, Duration::zero());
    EXPECT_LT(times->backward, std::chrono::seconds(5));
    ASSERT_EQ(times->idle.has_value(), step > 0);
    if (times->idle) EXPECT_GE(*times->idle, Duration::zero());
    ASSERT_EQ(times->whole.has_value(), step > 0);
    if (times->whole) EXPECT_GE(*times->whole, *times->idle + times->forward + times->backward);
  };
  give_step(0);
  for (std::int64_t step = 1; step < 5; ++step) {  // each is looked at once the next is under way
    give_step(step);
    check(step - 1);
  }
  check(4);
  give_step(5);  // and so is one alone
  check(5);
}

TEST_P(CudaBackend, KeepsTheLossesOfStepsThatAreUnderWay) {
  const int batch = 5, classes = 3;
  const std::vector<int> labels = {0, 1, 2, 0, 1};
  const std::span<const int> labels_there = upload(labels);
  std::vector<double> expected;
  const auto give_step = [&](std::int64_t step) {
    const Tensor logits = random_values(batch * classes);
    reference_->softmax_cross_entropy(batch, classes, logits, labels, 1, {});
    expected.push_back(reference_->loss().loss);
    cuda_->begin_turn(turn_of(step));
    cuda_->softmax_cross_entropy(batch, classes, tensor_of(logits), labels_there, 1, {});
  };
  give_step(0);
  for (std::int64_t step = 1; step < 5; ++step) {
    give_step(step);
    EXPECT_NEAR(cuda_->loss(turn_of(step - 1)).loss, expected[static_cast<std::size_t>(step - 1)], 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(, CudaBackend,
                         testing::Values(Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16),
                         name_of_case);

// Failures, apart: the fixture's backend must end without any.
class CudaBackendFailure : public testing_support::GpuTest {};

TEST_F(CudaBackendFailure, IsKeptWhereMemoryIsAtAnEnd) {
  const auto backend = make_cuda_backend(device(), Precision::kFp32);
  ASSERT_TRUE(backend.ok()) << backend.status().message();
  EXPECT_TRUE((*backend)->allocate(std::size_t{1} << 50).empty());
  EXPECT_EQ((*backend)->status().code(), Code::kResourceExhausted);
  EXPECT_TRUE(std::isnan((*backend)->loss().loss));
}

TEST_F(CudaBackendFailure, IsKeptWhereATensorIsNotAligned) {
  const auto backend = make_cuda_backend(device(), Precision::kFp32);
  ASSERT_TRUE(backend.ok()) << backend.status().message();
  const Out memory = (*backend)->allocate_floats(1000);
  const DenseShape shape{4, 8, 8};
  (*backend)->dense_forward(shape, memory.subspan(1, 32), memory.subspan(64, 64), memory.subspan(128, 8),
                            memory.subspan(256, 32));
  EXPECT_EQ((*backend)->status().code(), Code::kInternal);
}

TEST_F(CudaBackendFailure, IsKeptWhereATensorIsOfAnotherType) {
  const auto backend = make_cuda_backend(device(), Precision::kBf16);
  ASSERT_TRUE(backend.ok()) << backend.status().message();
  const Out floats = (*backend)->allocate_floats(1000), tensor = (*backend)->allocate_tensor(1000);
  const ConvShape shape{.batch = 1, .height = 4, .width = 4, .in = 8, .out = 8, .kernel = 1, .bias = false};
  (*backend)->conv2d_forward(shape, tensor.first(128), tensor.subspan(128, 64), {}, floats.first(128));
  EXPECT_EQ((*backend)->status().code(), Code::kInternal);
}

}  // namespace
}  // namespace syncopate::worker
