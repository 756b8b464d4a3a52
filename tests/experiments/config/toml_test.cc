#include "experiments/config/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

TEST(Toml, ReadsNumbersStringsAndComments) {
  const auto entries = read_toml("# a\n\n a = 4 # four\r\nb= \"x # \\\"y\\\" \\\\\"\nc = 'C:\\n'#\nd=1e-8");
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  EXPECT_THAT(*entries, ElementsAre(Pair("a", "4"), Pair("b", "x # \"y\" \\"), Pair("c", "C:\\n"), Pair("d", "1e-8")));
}

TEST(Toml, NamesTheLineThatItCannotRead) {
  for (const char* line : {"[run]", "workers", "= 4", "a =", "a = \"open", "a = \"x\" y", "a = 1 2", "a = [1]",
                           "a = "
                           "\"\\q\"",
                           "a = \"\\"}) {
    const auto entries = read_toml("ok = 1\n" + std::string(line));
    ASSERT_FALSE(entries.ok()) << line;
    EXPECT_THAT(entries.status().message(), HasSubstr("line 2: ")) << line;
  }
}

TEST(Toml, OfAnIntruderDoesNotSpeakToTheTerminal) {
  EXPECT_THAT(read_toml("a = 1\n\x1b[2J").status().message(), HasSubstr("line 2: '\\x1b[2J'"));
  EXPECT_THAT(from_toml_text("\x1b[2J = 1").status().message(), HasSubstr("\\x1b[2J: no such option"));
  EXPECT_THAT(from_toml_text("model = \"\x1b[2J\"").status().message(), HasSubstr("model: '\\x1b[2J' has control"));
  EXPECT_THAT(from_toml_text("model = \"a\\nb\"").status().message(), HasSubstr("model: 'a\\nb' has control"));
}

// A config in which every option differs from its default.
RunRequest unusual(Mode mode) {
  RunRequest config;
  config.mode = mode;
  config.workers = mode == Mode::kLocal ? 1 : 3;
  config.servers = 2;
  config.shards_per_server = 4;
  config.consistency = *ps::Consistency::parse("bounded:7");
  config.sharding = ps::ShardingPolicy::kLeastLoaded;
  config.chunk_bytes = 8192;
  config.staleness_lr = StalenessRate::kDivide;
  config.delay_compensation = {.lambda = 0.04f};
  config.momentum_correction = true;
  config.transport = TransportKind::kTcp;
  config.stragglers = *worker::Stragglers::parse("0:p0.5:1.25x,all:exp:0.5");
  config.compress = *parse_codec("topk:0.015");
  config.compress_answers = false;
  config.bucket_bytes = 4096;
  config.overlap = false;
  config.sync_every = 2;
  config.model = "mlp:784-32-10";
  config.train_samples = 3000;
  config.test_samples = 300;
  config.backend = BackendKind::kReference;
  config.optimizer = OptimizerChoice::kMomentum;
  config.learning_rate = 0.012345678901234567;
  config.lr_schedule = *LearningRateSchedule::parse("cosine,warmup:1");
  config.momentum = 0.8;
  config.weight_decay = 1e-5;
  config.global_batch_size = 96;
  config.steps = 77;
  config.target_accuracy = 0.9;
  config.stop_at_target = true;
  config.evaluate_every = *EvaluationInterval::parse("0.5epochs");
  config.seed = 1234567890123456789;
  config.repeat = 3;
  config.warmup_steps = 2;
  config.timeout_seconds = 7.5;
  return config;
}

TEST(ConfigFile, ReproducesARunOnGpus) {
  RunRequest config;
  config.mode = Mode::kAllreduce;
  config.device = DeviceKind::kCuda;
  config.share_gpu = true;
  config.precision = worker::Precision::kBf16;
  const std::string text = to_toml(resolved(config, "stamp"));
  const Result<ResolvedRun> read = from_toml_text(text);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(to_toml(*read), text);
  EXPECT_EQ(read->device, DeviceKind::kCuda);
  EXPECT_EQ(read->collective, CollectiveKind::kNccl);
  EXPECT_TRUE(read->share_gpu);
  EXPECT_EQ(read->precision, worker::Precision::kBf16);
}

TEST(ConfigFile, ReproducesTheRunInEveryMode) {
  for (const Mode mode : {Mode::kLocal, Mode::kPs, Mode::kAllreduce}) {
    const ResolvedRun config = resolved(unusual(mode), "stamp");
    const std::string text = to_toml(config);
    const Result<ResolvedRun> read = from_toml_text(text);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(to_toml(*read), text);
    EXPECT_EQ(read->learning_rate, config.learning_rate);
    EXPECT_EQ(read->seed, config.seed);
    EXPECT_EQ(read->batch_size, mode == Mode::kLocal ? 96 : 32);
  }
}

TEST(ConfigFile, KeepsAPathWithBlanksQuotesAndHashes) {
  RunRequest config;
  config.dataset = "mnist";
  config.data_dir = "/a b/\"c\" #1\\d";
  const Result<ResolvedRun> read = from_toml_text(to_toml(resolved(config)));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->data_dir, config.data_dir);
}

TEST(ConfigFile, RecordsWhatWasResolvedAndOnlyWhatHasAnEffect) {
  RunRequest config;
  config.mode = Mode::kAllreduce;
  const std::string text = to_toml(resolved(config, "stamp"));
  EXPECT_THAT(text, HasSubstr("\nworkers = 2 "));
  EXPECT_THAT(text, HasSubstr("\nlearning-rate = 0.001 "));
  EXPECT_THAT(text, HasSubstr("\ntransport = \"shm\" "));
  EXPECT_THAT(text, HasSubstr("\nbatch-size = 64 "));
  EXPECT_THAT(text, Not(HasSubstr("\nservers")));
  EXPECT_THAT(text, Not(HasSubstr("output")));
}

TEST(ConfigFile, IsCheckedLikeTheCommandLine) {
  EXPECT_EQ(from_toml_text("servers = 2").status().message(),
            "--servers=2: has an effect only with --mode=ps or --mode=hybrid; leave it out or add that");
  EXPECT_EQ(from_toml_text("seed = 1\nseed = 1").status().message(), "seed: given twice; once is enough");
  EXPECT_EQ(from_toml_text("output = 'x'").status().message(),
            "output: may not stand in a config file; give --output on the command line");
  EXPECT_FALSE(from_toml_text("workers = 2").ok());
}

TEST(ResolvedRun, TellsTheRoomsWhatItMeans) {
  ResolvedRun config;
  config.train_samples = 600;
  EXPECT_EQ(dataset_spec(config), "digits:600-10000");
  config.dataset = "mnist";
  EXPECT_EQ(dataset_spec(config), "mnist");
  config.optimizer = OptimizerChoice::kNesterov;
  config.momentum = 0.5;
  EXPECT_EQ(optimizer_of(config).kind, OptimizerKind::kMomentum);
  EXPECT_TRUE(optimizer_of(config).nesterov);
  EXPECT_EQ(optimizer_of(config).momentum, 0.5f);
}

TEST(ResolvedRun, NamesItsOutputAfterTimeAndMode) {
  RunRequest config;
  EXPECT_EQ(resolved(config, "20261120-135501").output, "results/20261120-135501-local");
  config.mode = Mode::kPs;
  config.consistency = *ps::Consistency::parse("bounded:4");
  EXPECT_EQ(resolved(config, "20261120-135501").output, "results/20261120-135501-ps-bounded-4");
}

TEST(ResolvedRun, PutsInTheElasticRateOfTheAuthorsOfEasgd) {
  RunRequest config;
  config.mode = Mode::kPs;
  config.workers = 4;
  EXPECT_EQ(resolved(config).elastic_alpha, 0);
  config.consistency = *ps::Consistency::parse("easgd:4");
  EXPECT_EQ(resolved(config).elastic_alpha, 0.225);
  config.elastic_alpha = 0.5;
  EXPECT_EQ(resolved(config).elastic_alpha, 0.5);
}

TEST(ResolvedRun, HasBackupWorkersUnderSyncAlone) {
  RunRequest config;
  config.backup_workers = 1;
  EXPECT_EQ(consistency_of(config).backup_workers(), 0);
  config.consistency = *ps::Consistency::parse("sync");
  EXPECT_EQ(consistency_of(config).backup_workers(), 1);
}

}  // namespace
}  // namespace syncopate::experiments
