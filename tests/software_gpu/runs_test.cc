// Whole runs with --device=cuda, as the software GPU lets them be tried: models, precisions, codecs, four GPUs, a
// checkpoint that goes on elsewhere, and ends that no GPU gives on request.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <optional>
#include <regex>
#include <string>

#include "experiments/checkpoint/checkpoint_store.h"
#include "experiments/cluster/exit_code.h"
#include "tests/support/run_program.h"
#include "tests/support/weights_distance.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::relative_distance;
using testing_support::operator+;
using Flags = std::vector<std::string>;

// One of the software GPU's settings, for the runs that a test starts.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Setting() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

Flags training(const std::string& model, int steps) {
  return {"--model=" + model, fmt::format("--steps={}", steps), "--train-samples=1024", "--test-samples=128"};
}

struct Job {
  const char* name;
  const char* model;
  Flags mode;
  double same_curve = 1e-2;  // as far as weights may be from the processor's, in lengths of their way
};

void PrintTo(const Job& job, std::ostream* out) { *out << job.name; }

class SoftwareGpuRun : public testing::TestWithParam<Job> {};

// Factors that are rounded to 8 or 11 bits, and codecs that take the largest values, go other ways.
const Job kJobs[] = {
    {"Resnet", "resnet20", {"--mode=local"}},
    {"Gpt", "gpt:2-2-32", {"--mode=local", "--dataset=grammar", "--context=16"}},
    {"GptOfManyTokens", "gpt:1-2-32", {"--mode=local", "--dataset=grammar", "--context=8", "--vocabulary=5001"}},
    {"GptInTf32", "gpt:2-2-32", {"--mode=local", "--dataset=grammar", "--context=16", "--precision=tf32"}, 0.1},
    {"LenetInBf16", "lenet", {"--mode=local", "--precision=bf16"}, 0.3},
    {"LenetInFp16", "lenet", {"--mode=local", "--precision=fp16"}, 0.1},
    {"ResnetInBf16", "resnet20", {"--mode=local", "--precision=bf16"}, 0.5},
    {"GptInBf16", "gpt:2-2-32", {"--mode=local", "--dataset=grammar", "--context=16", "--precision=bf16"}, 0.3},
    {"GptInFp16", "gpt:2-2-32", {"--mode=local", "--dataset=grammar", "--context=16", "--precision=fp16"}, 0.1},
    {"Bf16UnderPs", "mlp", {"--mode=ps", "--consistency=sync", "--workers=2", "--precision=bf16"}, 0.2},
    {"Int8OverTheRing", "mlp", {"--mode=allreduce", "--workers=2", "--collective=ring", "--compress=int8"}, 0.1},
    {"TopKUnderPs", "mlp", {"--mode=ps", "--consistency=sync", "--workers=2", "--compress=topk:0.05"}, 0.1},
    {"ShardedState", "mlp", {"--mode=sharded", "--workers=2"}},
    {"ShardedGradientsInBf16", "mlp", {"--mode=sharded", "--stage=2", "--workers=2", "--precision=bf16"}, 0.2},
    {"AsyncUnderPs", "mlp", {"--mode=ps", "--workers=2", "--servers=2"}, 1.0},
};

INSTANTIATE_TEST_SUITE_P(Of, SoftwareGpuRun, testing::ValuesIn(kJobs), [](const auto& job) { return job.param.name; });

TEST_P(SoftwareGpuRun, ComesToWhatTheProcessorComesTo) {
  const Flags flags =
      training(GetParam().model, 12) + GetParam().mode + Flags{"--batch-size=8", "--optimizer=momentum"};
  const bool is_shared = GetParam().mode.front() != "--mode=local";
  Flags on_cpu = flags + Flags{"--device=cpu"};
  std::erase_if(on_cpu, [](const std::string& flag) { return flag.starts_with("--precision"); });
  Program cpu(on_cpu), gpu(flags + Flags{"--device=cuda"} + (is_shared ? Flags{"--share-gpu"} : Flags()));
  ASSERT_EQ(cpu.wait().exit_code, 0);
  const ProgramEnd end = gpu.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const double distance = relative_distance(cpu.weights(), gpu.weights());
  EXPECT_LT(distance, GetParam().same_curve);
  fmt::print("{}: relative distance {:.2g}\n", GetParam().name, distance);
}

// One step, since 50 layers of batch norm on so few images carry a rounding far in the next.
TEST(SoftwareGpuRun, TrainsResnet50AsTheProcessorDoes) {
  const Flags flags = training("resnet50", 1) + Flags{"--mode=local", "--dataset=patterns", "--image-size=64",
                                                      "--classes=10", "--batch-size=8",     "--optimizer=sgd"};
  Program still(flags + Flags{"--device=cpu", "--learning-rate=0.0000001"});
  Program cpu(flags + Flags{"--device=cpu", "--learning-rate=0.001"});
  Program gpu(flags + Flags{"--device=cuda", "--learning-rate=0.001"});
  ASSERT_EQ(still.wait().exit_code, 0);
  ASSERT_EQ(cpu.wait().exit_code, 0);
  const ProgramEnd end = gpu.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_LT(relative_distance(cpu.weights(), gpu.weights(), still.weights()), 0.1);
}

TEST(SoftwareGpuRun, TrainsAlikeOnFourGpusAndOnOne) {
  const Setting devices("SOFTWARE_GPU_DEVICES", "4");
  const Flags flags = training("mlp", 20) + Flags{"--mode=allreduce", "--workers=4"};
  Program cpu(flags + Flags{"--device=cpu", "--collective=ring"}), gpus(flags + Flags{"--device=cuda"});
  ASSERT_EQ(cpu.wait().exit_code, 0);
  const ProgramEnd end = gpus.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_LT(relative_distance(cpu.weights(), gpus.weights()), 1e-3);
}

// In half the bytes. The rate is so high that the scaled gradients overflow at first.
TEST(SoftwareGpuRun, SkipsTheSameStepsOnAllRanksWhereScaledGradientsOverflow) {
  const Setting devices("SOFTWARE_GPU_DEVICES", "2");
  const Flags flags = training("mlp", 20) + Flags{"--mode=allreduce", "--workers=2", "--device=cuda"};
  Program floats(flags), halves(flags + Flags{"--precision=fp16"});
  ASSERT_EQ(floats.wait().exit_code, 0);
  const ProgramEnd end = halves.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json report = halves.summary();
  EXPECT_EQ(report["bytes_out_per_step"].get<double>() * 2, floats.summary()["bytes_out_per_step"].get<double>());
  const auto skipped = report["skipped_steps"].get<int>();
  EXPECT_EQ(report["loss_scale"].get<double>() * std::exp2(skipped), 65536);
  EXPECT_THAT(end.out, HasSubstr("loss scale"));
  EXPECT_LT(relative_distance(floats.weights(), halves.weights()), 0.3);
}

TEST(SoftwareGpuRun, ComesToTheSameWeightsWhereStepsAreLaunchedAsGraphs) {
  const Setting devices("SOFTWARE_GPU_DEVICES", "2");
  for (const Flags& mode : {Flags{"--mode=local", "--model=resnet20"}, Flags{"--mode=local", "--model=lenet"},
                            Flags{"--mode=local", "--model=lenet", "--precision=fp16"},
                            Flags{"--mode=allreduce", "--workers=2", "--model=mlp", "--bucket-bytes=65536"}}) {
    const Flags flags = mode + Flags{"--steps=9",        "--train-samples=64",   "--test-samples=16",  "--batch-size=4",
                                     "--optimizer=adam", "--lr-schedule=cosine", "--evaluate-every=5", "--device=cuda"};
    Program graphs(flags), calls(flags + Flags{"--cuda-graphs=off"});
    for (Program* const program : {&graphs, &calls}) {
      const ProgramEnd end = program->wait();
      ASSERT_EQ(end.exit_code, 0) << end.err;
    }
    EXPECT_EQ(relative_distance(graphs.weights(), calls.weights()), 0) << mode.back();
    const auto split = graphs.summary()["step_split_ms"];
    for (const char* const part : {"forward", "backward", "optimizer", "launch"}) EXPECT_GT(split[part], 0) << part;
    EXPECT_GT(split["other"], -1e-3) << "the parts of a step are no longer than the step";
  }
}

TEST(SoftwareGpuRun, GoesOnFromItsCheckpointOnAProcessor) {
  const Flags flags = training("mlp", 30) + Flags{"--mode=local", "--optimizer=momentum"};
  Program whole(flags + Flags{"--device=cpu"});
  ASSERT_EQ(whole.wait().exit_code, 0);
  Program first(flags +
                Flags{"--device=cuda", "--checkpoint-every=20", "--straggler=0:+50", "--fault=kill:worker0@step29"});
  EXPECT_EQ(first.wait().exit_code, 5);
  Program rest(flags + Flags{"--resume=" + first.output().string(), "--device=cpu"});
  const ProgramEnd end = rest.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_LT(relative_distance(whole.weights(), rest.weights()), 1e-3);
}

TEST(SoftwareGpuRun, GoesOnWithItsLossScale) {
  const Flags flags =
      training("lenet", 30) + Flags{"--mode=local", "--optimizer=adam", "--precision=fp16", "--device=cuda"};
  Program whole(flags);
  ASSERT_EQ(whole.wait().exit_code, 0);
  EXPECT_GE(whole.summary()["skipped_steps"].get<int>(), 1);
  Program first(flags + Flags{"--checkpoint-every=20", "--straggler=0:+50", "--fault=kill:worker0@step29"});
  EXPECT_EQ(first.wait().exit_code, 5);
  Program rest(flags + Flags{"--resume=" + first.output().string()});
  const ProgramEnd end = rest.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(relative_distance(whole.weights(), rest.weights()), 0);
  EXPECT_EQ(whole.summary()["loss_scale"], rest.summary()["loss_scale"]);
}

// The host hears of a step's loss once the step is done, which may be after the next one was given.
TEST(SoftwareGpuRun, CutsNoCheckpointBehindAStepWhoseLossIsNotFinite) {
  const Flags flags = training("mlp:784-64-64-64-64-64-64-64-64-64-64-64-64-10", 40) +
                      Flags{"--mode=local",    "--device=cuda",          "--batch-size=8",
                            "--optimizer=sgd", "--lr-schedule=constant", "--learning-rate=1000"};
  constexpr int kEndedByNan = static_cast<int>(ExitCode::kNotFinite);
  Program first(flags);
  ASSERT_EQ(first.wait().exit_code, kEndedByNan);
  const int step = first.summary()["not_finite"]["first"]["step"];
  Program program(flags + Flags{fmt::format("--checkpoint-every={}", step + 1)});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, kEndedByNan);
  EXPECT_THAT(end.err, HasSubstr(fmt::format("step {}: on worker 0 the loss is ", step)));
  EXPECT_THAT(CheckpointStore((program.output() / "checkpoints").string()).steps(), IsEmpty());
}

// A convolution that wants more workspace than there is memory, in the first step: it is not another's that is given
// since.
TEST(SoftwareGpuRun, EndsWithTheStepThatFindsNoMemory) {
  const Setting wants_much("SOFTWARE_GPU_SEED", "5"), memory("SOFTWARE_GPU_MEMORY_MIB", "90");
  Program program(training("lenet", 20) + Flags{"--mode=local", "--device=cuda", "--batch-size=8"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 4) << end.err;
  EXPECT_THAT(end.err, AllOf(HasSubstr("; backward at step 0,"), HasSubstr("no room for 104.86 MB of memory")));
}

TEST(SoftwareGpuRun, NamesARankOfNcclThatIsKilled) {
  const Setting devices("SOFTWARE_GPU_DEVICES", "2");
  Program program(training("mlp", 100000) + Flags{"--mode=allreduce", "--workers=2", "--device=cuda"});
  ASSERT_TRUE(program.wait_until_training(2));
  kill(program.process("worker", 1), SIGKILL);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 5) << end.err;
  EXPECT_THAT(end.out,
              AllOf(HasSubstr("the final weights: the run ended before"), testing::Not(HasSubstr("at the end"))));
  EXPECT_THAT(end.err, HasSubstr("worker 1"));
  EXPECT_THAT(program.processes(), IsEmpty());
}

TEST(SoftwareGpuRun, EndsInOrderAtCtrlC) {
  const Setting devices("SOFTWARE_GPU_DEVICES", "2");
  Program program(training("mlp", 100000) + Flags{"--mode=allreduce", "--workers=2", "--device=cuda"});
  ASSERT_TRUE(program.wait_until_training(2));
  program.signal(SIGINT);
  EXPECT_EQ(program.wait().exit_code, 130);
  EXPECT_THAT(program.errors(), Not(HasSubstr("FAULT")));
}

TEST(SoftwareGpuRun, NamesTheGpuWhoseMemoryFails) {
  const Setting fails("SOFTWARE_GPU_FAILS_AT", "400");
  Program program(training("mlp", 1000) + Flags{"--mode=local", "--device=cuda"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 1) << end.err;
  EXPECT_THAT(end.err, AllOf(HasSubstr("GPU 0"), HasSubstr("cudaErrorECCUncorrectable"), HasSubstr(" at step "),
                             HasSubstr("; the last work given was "), HasSubstr("nvidia-smi -q -d ECC")));
}

TEST(SoftwareGpuRun, SaysWhatDoesNotFit) {
  const Setting memory("SOFTWARE_GPU_MEMORY_MIB", "100");
  const auto with_batch = [](int batch) {
    return training("resnet20", 2) + Flags{fmt::format("--batch-size={}", batch), "--mode=local", "--device=cuda"};
  };
  Program program(with_batch(256));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 4) << end.err;
  EXPECT_THAT(end.err, AllOf(HasSubstr("a software GPU (GPU 0, 100 MiB): no room for "), Not(HasSubstr("opening"))));
  std::smatch named;
  ASSERT_TRUE(std::regex_search(end.err, named, std::regex("; --batch-size=([0-9]+) fits"))) << end.err;
  const int fits = std::stoi(named[1]);
  ASSERT_LT(fits, 256);
  Program smaller(with_batch(fits)), larger(with_batch(fits + fits / 8));
  const ProgramEnd trained = smaller.wait();
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(larger.wait().exit_code, 4);
}

TEST(SoftwareGpuRun, NamesTheGpuBeforeAllElse) {
  Program program(training("mlp", 2) + Flags{"--mode=local", "--device=cuda"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out.substr(0, end.out.find('\n')), HasSubstr("cuda fp32 on a software GPU (GPU 0, 8 GiB): mlp on "));
}

TEST(SoftwareGpuRun, RecordsWhichAlgorithmNcclTook) {
  const Setting devices("SOFTWARE_GPU_DEVICES", "2");
  const Flags flags = training("mlp", 4) + Flags{"--mode=allreduce", "--workers=2", "--device=cuda"};
  Program chosen(flags), ring(flags + Flags{"--collective=nccl:ring", "--overlap=off"});
  EXPECT_EQ(chosen.wait().exit_code, 0);
  const ProgramEnd end = ring.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("allreduce nccl:ring, 2 workers"));
  // The software GPU's NCCL takes a tree unless it is held to a ring.
  EXPECT_THAT(chosen.summary()["facts"]["collective"].get<std::string>(), HasSubstr(", Tree, LL"));
  EXPECT_THAT(ring.summary()["facts"]["collective"].get<std::string>(), HasSubstr(", Ring"));
  EXPECT_LT(relative_distance(chosen.weights(), ring.weights()), 1e-6);
}

}  // namespace
}  // namespace syncopate::experiments
