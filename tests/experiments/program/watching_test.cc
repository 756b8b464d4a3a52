// A run that is watched: validation, TensorBoard's files, metrics.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/os/file_descriptor.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::SizeIs;
using testing_support::lines_of;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::run_program;
using testing_support::text_of;
using testing_support::operator+;
using Flags = std::vector<std::string>;

const Flags kWatched{"--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096", "--test-samples=512"};

class Validation : public testing::TestWithParam<Flags> {};

INSTANTIATE_TEST_SUITE_P(In, Validation,
                         testing::Values(Flags{"--mode=local"}, Flags{"--mode=allreduce", "--workers=2"},
                                         Flags{"--mode=ps", "--workers=2", "--consistency=sync"},
                                         Flags{"--mode=ps", "--workers=2", "--cluster=simulated", "--compute=1ms"}),
                         [](const auto& info) { return fmt::format("Case{}", info.index); });

TEST_P(Validation, IsMeasuredAtEachPointOnSamplesThatNobodyTrains) {
  Program program(kWatched + GetParam() + Flags{"--validation=0.25", "--epochs=2"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json summary = program.summary();
  const int workers = GetParam().size() == 1 ? 1 : 2;
  EXPECT_EQ(summary["steps_per_epoch"], 3072 / (16 * workers)) << "1,024 of 4,096 samples are held out";
  EXPECT_GT(summary["final_validation_accuracy"].get<double>(), 0.3);
  EXPECT_GT(summary["final_validation_loss"].get<double>(), 0);
  const std::vector<std::string> validation = program.column("evals.csv", "validation_accuracy");
  EXPECT_THAT(validation, testing::Contains(testing::Not("")));
  EXPECT_THAT(validation, testing::Not(testing::Contains("")));
  EXPECT_NE(validation, program.column("evals.csv", "accuracy"));
  EXPECT_NE(program.column("evals.csv", "train_loss").front(), "");
  EXPECT_GT(std::stod(program.column("evals.csv", "train_accuracy").front()), 0.1);
  EXPECT_THAT(end.out, ContainsRegex("evaluated  train loss [0-9.]+, accuracy [0-9.]+\n  validation loss [0-9.]+, "
                                     "accuracy [0-9.]+  test loss"));
  EXPECT_THAT(end.out, HasSubstr("\n  validation loss   "));
}

// In the set's own order, the first 3,072 of 4,096 samples fill 192 batches, which a run without a validation set
// trains first, too.
TEST(ValidationSet, LeavesTheTestSetAndTheWeightsOfWhatIsTrainedAlone) {
  const Flags first_samples = kWatched + Flags{"--mode=local", "--shuffle=off", "--steps=192"};
  Program with(first_samples + Flags{"--validation=0.25"}), without(first_samples);
  ASSERT_EQ(with.wait().exit_code, 0);
  ASSERT_EQ(without.wait().exit_code, 0);
  EXPECT_EQ(with.weights(), without.weights());
  EXPECT_EQ(with.column("evals.csv", "loss").back(), without.column("evals.csv", "loss").back());
}

TEST(ValidationSet, DecidesWhenTheTargetIsReached) {
  Program program(kWatched + Flags{"--mode=local", "--validation=0.25", "--target-accuracy=0.2", "--stop-at-target",
                                   "--epochs=50"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(program.summary()["outcome"].get<std::string>(), HasSubstr("stopped at the target"));
  EXPECT_THAT(end.out, ContainsRegex("time to 20 %.*, by what is held out\n"));
}

TEST(ValidationSet, IsRefusedWhereItMakesNoSense) {
  EXPECT_THAT(run_program({"--model=ncf", "--dataset=zipf-ratings", "--validation=0.2"}).err,
              HasSubstr("--validation=0.2: has an effect only with --dataset=digits, mnist"));
  EXPECT_THAT(run_program({"--train-samples=128", "--validation=0.9"}).err,
              HasSubstr("--train-samples=128: 12 are left beside --validation=0.9, and must hold one batch"));
}

TEST(TensorBoard, HasFilesOfTrainingTestAndValidationThatAreNeverEmpty) {
  Program program(kWatched + Flags{"--mode=ps", "--workers=2", "--validation=0.25", "--tensorboard", "--epochs=1"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  for (const char* part : {"train", "test", "validation"}) {
    int files = 0;
    for (const auto& entry : fs::directory_iterator(program.output() / "tensorboard" / part)) {
      ++files;
      EXPECT_THAT(entry.path().filename().string(), testing::StartsWith("events.out.tfevents."));
      EXPECT_THAT(text_of(entry.path()), HasSubstr("epoch_loss"));
    }
    EXPECT_EQ(files, 1) << part;
  }
}

TEST(TensorBoard, HasAFolderForEachRepeat) {
  Program program(kWatched + Flags{"--mode=local", "--steps=12", "--tensorboard", "--repeat=2"});
  ASSERT_EQ(program.wait().exit_code, 0);
  for (const char* repeat : {"repeat-0", "repeat-1"}) {
    EXPECT_TRUE(fs::is_directory(program.output() / "tensorboard" / repeat / "train"));
  }
}

// What the port answers; none if nobody listens.
std::optional<std::string> scrape(int port) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return std::nullopt;
  constexpr std::string_view kRequest = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (::send(socket.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) < 0) return std::nullopt;
  std::string text;
  char bytes[4096];
  while (true) {
    const ssize_t count = ::recv(socket.get(), bytes, sizeof(bytes), 0);
    if (count <= 0) return text;
    text.append(bytes, static_cast<std::size_t>(count));
  }
}

// A port that was free a moment ago.
int free_port() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  return ntohs(address.sin_port);
}

TEST(Metrics, AreServedWhileTheRunGoesOnAndNoLonger) {
  const int port = free_port();
  Program program(kWatched + Flags{"--mode=ps", "--workers=2", "--straggler=all:+5", "--epochs=10000",
                                   fmt::format("--metrics={}", port)});
  ASSERT_TRUE(program.wait_until_training(2));
  std::string text;
  EXPECT_TRUE(program.wait_until("there are metrics of both workers", [&] {
    text = scrape(port).value_or("");
    return text.find("syncopate_steps_total{worker=\"1\"} 0") == std::string::npos &&
           text.find("syncopate_worker_up{worker=\"1\"} 1\n") != std::string::npos;
  }));
  EXPECT_THAT(text, testing::StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4;"));
  EXPECT_THAT(text, HasSubstr("syncopate_run_info{mode=\"ps\",model=\"mlp:784-32-10\",dataset=\"digits\""));
  program.signal(SIGINT);
  (void)program.wait();
  EXPECT_EQ(scrape(port), std::nullopt);
}

TEST(Metrics, TellOfAPortThatIsTaken) {
  const FileDescriptor taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(::bind(taken.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(taken.get(), 1), 0);
  ASSERT_EQ(::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const int port = ntohs(address.sin_port);
  Program program(kWatched + Flags{"--mode=local", fmt::format("--metrics={}", port)});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr(fmt::format("--metrics={}: 127.0.0.1:{} cannot be listened on: Address already in use",
                                             port, port)));
  EXPECT_FALSE(fs::exists(program.output())) << "nothing has begun";
}

TEST(Metrics, AreNotOfVirtualTime) {
  EXPECT_THAT(run_program({"--mode=ps", "--cluster=simulated", "--metrics=0"}).err,
              HasSubstr("--metrics=0: has an effect only with --cluster=real"));
}

}  // namespace
}  // namespace syncopate::experiments
