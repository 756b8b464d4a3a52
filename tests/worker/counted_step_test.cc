// The work of small steps, counted by hand.
#include "worker/counted_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace syncopate::worker {

void PrintTo(const CountedOperation& operation, std::ostream* out) {
  *out << operation.name << ": " << operation.launches << " launches, " << operation.flops << " FLOPs, "
       << operation.bytes_read << " bytes read, " << operation.bytes_written << " written";
}

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What a piece of work is known by here: reads and writes in values of float32, and bytes read beside them.
auto is_work(const char* name, int launches, double flops, double read, double written, double more_read = 0) {
  using testing::AllOf;
  using testing::Field;
  return AllOf(Field(&CountedOperation::name, name), Field(&CountedOperation::launches, launches),
               Field(&CountedOperation::flops, flops), Field(&CountedOperation::bytes_read, 4 * read + more_read),
               Field(&CountedOperation::bytes_written, 4 * written));
}

SampleForm images(int height, int width, int channels, int classes) {
  return {.image = {height, width, channels}, .classes = classes};
}

CountedStep counted(const std::string& spec, const SampleForm& form, int batch_size,
                    ElementType type = ElementType::kFloat32) {
  const Result<CountedStep> step = count_step(spec, form, batch_size, type);
  EXPECT_TRUE(step.ok()) << step.status().message();
  return step.ok() ? *step : CountedStep();
}

int launches_of(const CountedStep& step, WorkKind kind) {
  int launches = 0;
  for (const auto* const pass : {&step.forward, &step.backward}) {
    for (const CountedOperation& operation : *pass) launches += operation.kind == kind ? operation.launches : 0;
  }
  return launches;
}

double flops_of(const std::vector<CountedOperation>& pass) {
  return std::accumulate(pass.begin(), pass.end(), 0.0,
                         [](double sum, const CountedOperation& operation) { return sum + operation.flops; });
}

TEST(CountedStep, HasEachProductOfAnMlp) {
  const CountedStep step = counted("mlp:6-5-3", images(1, 6, 1, 3), 4);
  EXPECT_THAT(step.forward, ElementsAre(is_work("dense forward, 4 x 6 -> 5", 1, 240, 4 * 6 + 6 * 5 + 5, 4 * 5),
                                        is_work("dense forward, 4 x 5 -> 3", 1, 120, 4 * 5 + 5 * 3 + 3, 4 * 3),
                                        is_work("loss, 4 x 3", 2, 0, 4 * 3, 4 * 3, 4 * sizeof(int))));
  EXPECT_THAT(step.backward,
              ElementsAre(is_work("dense weights' gradient, 4 x 5 -> 3", 1, 120, 4 * 5 + 4 * 3, 5 * 3 + 3),
                          is_work("dense input's gradient, 4 x 5 -> 3", 1, 120, 5 * 3 + 4 * 3, 4 * 5),
                          is_work("relu's gradient, 20", 1, 0, 2 * 4 * 5, 4 * 5),
                          is_work("dense weights' gradient, 4 x 6 -> 5", 1, 240, 4 * 6 + 4 * 5, 6 * 5 + 5)));
  EXPECT_EQ(step.weights, 32u + 16 + 16 + 16) << "each tensor of the arena begins at a multiple of 16";
}

TEST(CountedStep, HasAConvolutionAndWhatPoolsItsOutput) {
  // 8x8 pixels, by a kernel of 3 without padding, are 6x6, and pooled 3x3.
  const CountedStep step = counted("conv:2-7", images(8, 8, 1, 3), 5);
  constexpr double kFlops = 2.0 * 5 * 6 * 6 * 2 * 3 * 3 * 1, kIn = 5 * 8 * 8, kOut = 5 * 6 * 6 * 2,
                   kPooled = 5 * 3 * 3 * 2;
  ASSERT_GE(step.forward.size(), 3u);
  EXPECT_THAT(step.forward[0], is_work("conv2d forward, 3x3, 8x8x1 -> 6x6x2", 1, kFlops, kIn + 18, kOut));
  EXPECT_THAT(step.forward[1], is_work("max pool, 2x2, 6x6x2", 1, 0, kOut, kPooled + kPooled / 4));
  EXPECT_THAT(step.forward[2], is_work("bias, 45 x 2", 1, 0, kPooled + 2, kPooled));
  ASSERT_GE(step.backward.size(), 3u);
  EXPECT_THAT(step.backward.back(),
              is_work("conv2d weights' gradient, 3x3, 8x8x1 -> 6x6x2", 1, kFlops, kIn + kOut, 18));
  EXPECT_THAT(*(step.backward.end() - 2), is_work("max pool's gradient, 2x2, 6x6x2", 1, 0, kPooled, kOut, kPooled));
}

TEST(CountedStep, HasAttentionWithoutWhatIsMasked) {
  const SampleForm texts{.classes = 11, .ids = {{.name = "token", .columns = 6, .range = 11}}, .labels = 6};
  const CountedStep step = counted("gpt:1-2-8", texts, 3);
  const double product = 3 * 6 * 7 * 8;  // 3 texts, 21 pairs of positions, 8 wide, a multiply and an add
  const auto named = [](const std::string& name) {
    return [name](const CountedOperation& operation) { return operation.name.starts_with(name); };
  };
  const auto attention = std::ranges::find_if(step.forward, named("attention, "));
  ASSERT_NE(attention, step.forward.end());
  EXPECT_THAT(*attention, is_work("attention, 3 x 6 positions, 2 heads of 4", 1, 2 * product, 3 * 3 * 6 * 8,
                                  3 * 6 * 8 + 2 * 3 * 2 * 6));
  const auto gradient = std::ranges::find_if(step.backward, named("attention's gradient, "));
  ASSERT_NE(gradient, step.backward.end());
  EXPECT_EQ(gradient->flops, 5 * product);
}

// Forward's FLOPs are what layers say of themselves; backward does each product twice, but for the first layer's, whose
// input has no gradient.
TEST(CountedStep, AgreesWithWhatModelsSayOfThemselves) {
  const CountedStep step = counted("resnet50", images(224, 224, 3, 1000), 2);
  const double forward = flops_of(step.forward);
  EXPECT_NEAR(forward, 2 * 8.2e9, 2 * 0.1e9) << "ResNet-50 has 4.1 billion multiplications and additions";
  const double first = 2.0 * 2 * 112 * 112 * 64 * 7 * 7 * 3;
  EXPECT_NEAR(flops_of(step.backward), 2 * forward - first, 1e-6 * forward);
}

// The batch arrives as floats, and is rounded first.
TEST(CountedStep, HasHalfTheBytesIn16Bits) {
  const SampleForm form = images(1, 6, 1, 3);
  const CountedStep full = counted("mlp:6-5-3", form, 4), half = counted("mlp:6-5-3", form, 4, ElementType::kBfloat16);
  ASSERT_EQ(half.forward.size(), full.forward.size() + 1);
  EXPECT_EQ(half.forward[0].bytes_read, 4 * 4 * 6);
  EXPECT_EQ(half.forward[0].bytes_written, 2 * 4 * 6);
  EXPECT_EQ(half.forward[1].flops, full.forward[0].flops);
  EXPECT_EQ(half.forward[1].bytes_read, full.forward[0].bytes_read / 2);
  ASSERT_EQ(half.backward.size(), full.backward.size());
  for (std::size_t i = 0; i < half.backward.size(); ++i) {
    EXPECT_EQ(half.backward[i].bytes_read, full.backward[i].bytes_read / 2) << half.backward[i].name;
    EXPECT_EQ(half.backward[i].bytes_written, full.backward[i].bytes_written / 2) << half.backward[i].name;
  }
  const std::size_t batch = 4 * 4 * (6 + 1);  // values and labels
  EXPECT_EQ(half.activation_bytes - batch, (full.activation_bytes - batch) / 2 + 2 * 4 * 6);
}

// As docs/gpus.md has them, without the update, which is one kernel.
TEST(CountedStep, HasTheLaunchesOfAGpu) {
  struct Row {
    const char* model;
    SampleForm form;
    int kernels, products, convolutions;
  };
  const SampleForm digits = images(28, 28, 1, 10);
  const SampleForm texts{.classes = 8, .ids = {{.name = "token", .columns = 16, .range = 8}}, .labels = 16};
  for (const Row& row : {Row{"mlp", digits, 5, 8, 0}, Row{"lenet", digits, 12, 6, 5},
                         Row{"resnet20", digits, 96, 3, 56}, Row{"resnet50", images(32, 32, 3, 10), 267, 3, 158},
                         Row{"gpt:2-2-32", texts, 36, 27, 0}, Row{"gpt:12-12-768", texts, 166, 147, 0}}) {
    const CountedStep step = counted(row.model, row.form, 2);
    EXPECT_EQ(launches_of(step, WorkKind::kKernel), row.kernels - 1) << row.model;
    EXPECT_EQ(launches_of(step, WorkKind::kProduct), row.products) << row.model;
    EXPECT_EQ(launches_of(step, WorkKind::kConvolution), row.convolutions) << row.model;
  }
}

TEST(CountedStep, RefusesWhatTrainsOnProcessorsAlone) {
  EXPECT_THAT(count_step("ncf", {}, 4, ElementType::kFloat32).status().message(),
              HasSubstr("--model=ncf: trains on processors alone"));
  EXPECT_THAT(count_step("mlp:7-3", images(1, 6, 1, 3), 4, ElementType::kFloat32).status().message(),
              HasSubstr("an image of 1x6x1 has 6"));
}

}  // namespace
}  // namespace syncopate::worker
