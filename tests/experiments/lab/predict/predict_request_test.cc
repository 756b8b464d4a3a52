#include "experiments/lab/predict/predict_request.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "experiments/lab/predict/prediction_line.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> usual_with(const std::vector<std::string>& more) {
  using testing_support::operator+;
  return std::vector<std::string>{"--profile=resnet50", "--workers=1,8", "--batch-size=64", "--step-time=0.292",
                                  "--shape=25Gbit+50us"} +
         more;
}

std::string refused(const std::vector<std::string>& words) { return parse_predict_request(words).status().message(); }

TEST(PredictRequest, HasServersOnWorkersHostsUnasked) {
  EXPECT_THAT(refused(usual_with({"--servers=colocated"})),
              StartsWith("--servers=colocated: predict has servers on the workers' hosts beside others"));
}

TEST(PredictRequest, ReadsItsOptions) {
  const Result<PredictRequest> request = parse_predict_request(usual_with({"--servers=4", "--sharding=whole"}));
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->job.profile.model, "resnet50");
  EXPECT_THAT(request->job.workers, ElementsAre(1, 8));
  EXPECT_EQ(request->job.batch_size, 64);
  EXPECT_EQ(request->job.step_seconds, 0.292);
  const prediction::Network network = request->job.network(8);
  EXPECT_EQ(network.bytes_per_second, 25e9 / 8 * 1448 / 1538);  // what TCP leaves of it
  EXPECT_EQ(network.alpha, 50e-6);
  EXPECT_EQ(network.workers, 8);
  EXPECT_FALSE(request->job.prices.has_value());
  EXPECT_EQ(request->servers, 4);
  EXPECT_EQ(request->sharding, prediction::Sharding::kWhole);
}

TEST(PredictRequest, SaysWhatIsWrong) {
  EXPECT_EQ(refused({}), "predict: --workers is missing");
  EXPECT_EQ(refused({"--workers=4"}),
            "--profile is missing: the model, as in --profile=resnet50; --model=resnet50 is the same");
  EXPECT_EQ(refused({"--workers=4", "--model=resnet50", "--profile=resnet50"}),
            "--model and --profile say the same: one of them is enough");
  EXPECT_THAT(refused({"--workers=4", "--model=profile:nope"}), StartsWith("--model=nope: no such profile"));
  EXPECT_THAT(refused(usual_with({"--workers=2"})), StartsWith("--workers: given 2 times"));
  EXPECT_THAT(refused(usual_with({"--server=2"})), AllOf(HasSubstr("no such option"), HasSubstr("mean --servers?")));
  EXPECT_THAT(refused(usual_with({"4"})), StartsWith("predict: 4: no such option; there are --workers, --model"));
  EXPECT_THAT(refused(usual_with({"--servers"})), StartsWith("--servers: needs a value"));
  EXPECT_EQ(refused(usual_with({"--servers=0"})), "--servers=0: must be 1 to 65536");
  EXPECT_THAT(refused(usual_with({"--inside=1gbit"})), HasSubstr("add --simulate=frames, or leave it out"));
  EXPECT_EQ(refused(usual_with({"--sharding=odd"})), "--sharding=odd: must be even or whole");
  EXPECT_EQ(refused(usual_with({"--bucket-bytes=25Mb"})),
            "--bucket-bytes=25Mb: must be 0 to 1000000000000 bytes, as 25000000, 25MB or 24MiB");
  std::vector<std::string> words = usual_with({});
  words[0] = "--profile=resnet51";
  EXPECT_THAT(refused(words), StartsWith("--profile=resnet51: no such profile; there are alexnet,"));
  words = usual_with({});
  for (const char* workers : {"--workers=,", "--workers=1,", "--workers=0", "--workers=x", "--workers=1,,2"}) {
    words[1] = workers;
    EXPECT_THAT(refused(words), StartsWith("--workers=")) << workers;
  }
  words = usual_with({});
  for (const char* time : {"--step-time=0", "--step-time=nan", "--step-time=inf", "--step-time=-1"}) {
    words[3] = time;
    EXPECT_THAT(refused(words), AllOf(StartsWith(time), HasSubstr("must be"))) << time;
  }
  words = usual_with({});
  words[4] = "--shape=10GB";
  EXPECT_THAT(refused(words), StartsWith("--shape=10GB: must be RATE or RATE+DELAY"));
}

TEST(PredictRequest, TakesTheStepOfAKnownDevice) {
  const auto job_of = [](const std::vector<std::string>& more) {
    using testing_support::operator+;
    const std::vector<std::string> words = {"--model=torchvision-resnet50", "--workers=8", "--shape=25gbit"};
    const Result<PredictRequest> request = parse_predict_request(words + more);
    EXPECT_TRUE(request.ok()) << request.status().message();
    return request.ok() ? request->job : ScaledJob();
  };
  const ScaledJob largest = job_of({"--compute=p100"}), half = job_of({"--compute=p100", "--batch-size=32"});
  EXPECT_EQ(largest.batch_size, 64);
  EXPECT_NEAR(largest.step_seconds, 64 / 219.0, 1e-12);
  EXPECT_NEAR(half.step_seconds, 32 / 195.0, 1e-12);
  EXPECT_THAT(title_of(largest),
              HasSubstr("\nThe step is typical of p100, not measured on yours: fp32, 219 samples/s in "
                        "batches of 64; TensorFlow"));
  EXPECT_EQ(job_of({"--compute=150ms", "--batch-size=8"}).step_seconds, 0.15);
  const ScaledJob by_rate = job_of({"--compute=10TFLOPS", "--batch-size=8"});
  EXPECT_NEAR(by_rate.step_seconds, 3 * 8 * by_rate.profile.forward_flops() / 10e12, 1e-12);
}

TEST(PredictRequest, SaysWhatIsWrongWithADevice) {
  const auto refusal = [](const std::vector<std::string>& more) {
    using testing_support::operator+;
    return refused(std::vector<std::string>{"--model=gpt2", "--workers=8", "--shape=25gbit"} + more);
  };
  EXPECT_THAT(refusal({"--compute=k80"}), AllOf(StartsWith("--compute=k80: no step of gpt2 on it is known; there are "),
                                                HasSubstr("k80 (alexnet, inception3, resnet50, vgg16)")));
  for (const char* word : {"t4", "solo", "profile"}) {
    EXPECT_THAT(refusal({"--compute=" + std::string(word)}), HasSubstr("or a known device: a100, cpu-core, "));
  }
  EXPECT_THAT(refusal({"--compute=150ms"}), StartsWith("--batch-size is missing: --compute=150ms"));
  EXPECT_EQ(refusal({"--compute=v100", "--step-time=1"}),
            "--compute and --step-time say the same: one of them is enough");
  EXPECT_THAT(prediction_text({"advise", "--model=gpt2", "--device=a100"}).status().message(),
              HasSubstr("--compute=a100 takes the typical step of a known device"));
}

TEST(PredictRequest, TakesPricesTogether) {
  const Result<PredictRequest> request = parse_predict_request(usual_with({"--price-worker=3.06", "--price-server=0"}));
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->job.prices.value().worker, 3.06);
  EXPECT_EQ(request->job.prices.value().server, 0);
  EXPECT_EQ(refused(usual_with({"--price-worker=3"})),
            "--price-server is missing beside --price-worker: give both, 0 for hosts that cost nothing");
  EXPECT_THAT(refused(usual_with({"--price-server=3"})), StartsWith("--price-worker is missing beside"));
  for (const char* price : {"-1", "nan", "inf", "3USD"}) {
    EXPECT_EQ(refused(usual_with({fmt::format("--price-worker={}", price), "--price-server=1"})),
              fmt::format("--price-worker={}: must be 0 to 1000000000, for a host and hour", price));
  }
}

TEST(PredictRequest, TakesAProfileOfOnesOwn) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() / "toy.json";
  std::ofstream(path) << R"({"model":"toy","source":"here","input":[1],"other_forward_flops":0,"tensors":[]})";
  std::vector<std::string> words = usual_with({});
  words[0] = "--profile=" + path;
  EXPECT_EQ(refused(words), "--profile=" + path + ": tensors: must be a list of 1 to 65536");
  words[0] = "--profile=" + path + "x.json";
  EXPECT_THAT(refused(words), StartsWith("--profile=" + path + "x.json: cannot be read"));
}

class PredictOfAMeasuredProfile : public testing::Test {
 protected:
  PredictOfAMeasuredProfile() {
    std::ofstream(profile_) << R"({"model":"toy","source":"here","input":[1],"other_forward_flops":0,"batch_size":16,
      "tensors":[{"name":"w","shape":[3],"forward_flops":0,"forward_seconds":0.25,"backward_seconds":0.5}]})";
    std::ofstream(cluster_) << "link = \"10gbit+20us\"\n";
  }

  const testing_support::TemporaryFolder folder_;
  const std::string profile_ = folder_.path() / "toy.json", cluster_ = folder_.path() / "cluster.toml";
};

TEST_F(PredictOfAMeasuredProfile, TakesStepAndLinkFromFiles) {
  const Result<PredictRequest> request =
      parse_predict_request({"--profile=" + profile_, "--workers=4", "--cluster=" + cluster_});
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->job.batch_size, 16);
  EXPECT_EQ(request->job.step_seconds, 0.75);
  EXPECT_EQ(request->job.link.to_string(), "10gbit+20us");
}

TEST_F(PredictOfAMeasuredProfile, TakesTheStepOfAnotherDevice) {
  const Result<PredictRequest> request = parse_predict_request(
      {"--profile=" + profile_, "--workers=4", "--shape=1gbit", "--step-time=0.1", "--batch-size=64"});
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->job.batch_size, 64);
  EXPECT_EQ(request->job.step_seconds, 0.1);
}

TEST_F(PredictOfAMeasuredProfile, SaysWhatIsMissing) {
  EXPECT_EQ(
      refused({"--profile=" + profile_, "--workers=4", "--shape=1gbit", "--step-time=1"}),
      "--batch-size is missing: " + profile_ +
          " has times of its own; leave both --batch-size and --step-time out, or give both, as of another device");
  EXPECT_THAT(refused({"--profile=" + profile_, "--workers=4"}), StartsWith("--shape is missing"));
  EXPECT_THAT(refused({"--profile=resnet50", "--workers=4", "--shape=1gbit", "--step-time=1"}),
              StartsWith("--batch-size is missing: resnet50 has no times"));
  EXPECT_THAT(refused({"--profile=" + profile_, "--workers=4", "--cluster=" + cluster_ + "x"}),
              StartsWith("--cluster=" + cluster_ + "x: "));
  std::ofstream(cluster_) << "sum = \"1GB/s\"\n";
  EXPECT_THAT(refused({"--profile=" + profile_, "--workers=4", "--cluster=" + cluster_}), HasSubstr("add --shape"));
}

TEST(PredictText, HasARowForEachSizeAndExchange) {
  using testing_support::operator+;
  const Result<std::string> text = prediction_text(std::vector<std::string>{"predict"} + usual_with({"--servers=2"}));
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, AllOf(HasSubstr("Closed form, nothing is simulated or measured"), HasSubstr("\nring allreduce"),
                           HasSubstr("a tree sends each bucket whole"), HasSubstr("\nservers: 2, even shards"),
                           HasSubstr("\na server on each host, even shards"), HasSubstr("100.0 %")));
}

TEST(PredictText, HasCostsOnlyWherePricesAreGiven) {
  using testing_support::operator+;
  std::vector<std::string> words = usual_with({"--servers=2", "--price-worker=3.6", "--price-server=1.8"});
  words[1] = "--workers=1";
  const Result<std::string> text = prediction_text(std::vector<std::string>{"predict"} + words);
  ASSERT_TRUE(text.ok()) << text.status().message();
  // A worker alone: 64 samples in 0.292 s; a million in 4562.5 s, which cost a thousandth of the price each. With two
  // servers' hosts it costs twice as much or more.
  EXPECT_THAT(*text, AllOf(HasSubstr("  cost/million\n"), HasSubstr(" 4.56\n")));
  EXPECT_THAT(*prediction_text(std::vector<std::string>{"predict"} + usual_with({})), Not(HasSubstr("cost per")));
}

}  // namespace
}  // namespace syncopate::experiments
