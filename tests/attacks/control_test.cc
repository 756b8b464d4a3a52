// The control connection: whoever speaks in the name of one of the run's processes is not heard, and hears nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <tuple>

#include "experiments/cluster/control/packed_steps.h"
#include "tests/support/attacked_run.h"
#include "tests/support/rejection_lines.h"

namespace syncopate::attacks {
namespace {

using experiments::control::ToCoordinator;
using testing_support::await_run;
using testing_support::ForgedLine;
using testing_support::until_the_end;
using testing_support::VisibleRun;

const Flags kMode{"--mode=ps", "--workers=2", "--consistency=sync"};
constexpr const char* kEscapes = "\x1b]0;taken over\x07\x1b[2J\x1b[1;31mall is well\r";
constexpr std::chrono::milliseconds kMoment{40};
constexpr int kMostAttempts = 50;

// What an intruder says, and in whose name.
struct Forgery {
  const char* name;
  const char* identity;
  void (*fill)(ToCoordinator& message);
  std::size_t weights = 0;
};
void PrintTo(const Forgery& forgery, std::ostream* out) { *out << forgery.name; }

const Forgery kForgeries[] = {
    {"Evaluation", "evaluator-0",
     [](ToCoordinator& message) {
       auto& evaluation = *message.mutable_evaluation();
       evaluation.set_accuracy(0.99999);
       evaluation.mutable_snapshot()->set_point(100);
       evaluation.mutable_snapshot()->set_steps_done(200);
       evaluation.mutable_snapshot()->set_final(true);
     }},
    {"FinalModel", "worker-0",
     [](ToCoordinator& message) {
       message.mutable_snapshot()->set_point(8);
       message.mutable_snapshot()->set_steps_done(200);
       message.mutable_snapshot()->set_final(true);
     },
     kParameters + 6},  // the arena's padding
    {"FailureThatIsNone", "server-0", [](ToCoordinator& message) { message.mutable_failure()->set_code(0); }},
    {"FailureOfNoKind", "worker-1", [](ToCoordinator& message) { message.mutable_failure()->set_code(4711); }},
    {"FailureWithEscapes", "worker-1",
     [](ToCoordinator& message) {
       message.mutable_failure()->set_code(1);
       message.mutable_failure()->set_message(kEscapes);
       message.mutable_failure()->set_operation(kEscapes);
     }},
    {"FactWithEscapes", "worker-0",
     [](ToCoordinator& message) {
       message.mutable_fact()->set_name(kEscapes);
       message.mutable_fact()->set_value(kEscapes);
     }},
    {"EndOfAServer", "server-0", [](ToCoordinator& message) { message.mutable_finished(); }},
    {"EndOfAWorker", "worker-1", [](ToCoordinator& message) { message.mutable_finished(); }},
    {"Steps", "worker-1",
     [](ToCoordinator& message) {
       StepRecord step;
       step.step = std::numeric_limits<std::int64_t>::max();
       step.epoch = std::numeric_limits<std::int64_t>::min();
       step.samples = std::numeric_limits<std::int64_t>::max();
       step.loss = std::numeric_limits<double>::quiet_NaN();
       message.mutable_steps()->set_packed(
           experiments::pack_steps(std::vector<experiments::SentStep>{{.record = step}}));
     }},
    {"Place", "worker-1",
     [](ToCoordinator& message) {
       auto& publish = *message.mutable_publish();
       publish.set_group("data@0");
       publish.set_rank(1);
       publish.set_size(3);
       publish.set_value("intruder's");
     }},
    {"LossOfAnother", "server-0",
     [](ToCoordinator& message) {
       message.mutable_missing_worker()->set_rank(1);
       message.mutable_missing_worker()->set_waited(std::int64_t{9'000'000'000});
     }},
    {"Trouble", "worker-0",
     [](ToCoordinator& message) {
       message.mutable_trouble()->mutable_failure()->set_code(5);
       message.mutable_trouble()->mutable_failure()->set_message("server 0 is gone");
     }},
    {"EndOfTraining", "worker-0", [](ToCoordinator& message) { message.mutable_finish_question(); }},
    {"CheckpointOfNoKind", "server-0",
     [](ToCoordinator& message) {
       message.mutable_checkpoint_report()->set_kind(99);
       message.mutable_checkpoint_report()->set_writer(kEscapes);
     }},
};

const auto kNameOfForgery = [](const auto& forgery) { return std::string(forgery.param.name); };
const auto kNameOfCase = [](const auto& taken) {
  const std::string identity = std::get<0>(taken.param);
  const bool is_another = std::get<1>(taken.param) == Intruder::User::kAnother;
  return identity.substr(0, identity.find('-')) + (is_another ? "_by_another_user" : "_by_the_own_user");
};

class ForgedMessage : public testing::TestWithParam<Forgery> {};
INSTANTIATE_TEST_SUITE_P(Of, ForgedMessage, testing::ValuesIn(kForgeries), kNameOfForgery);

TEST_P(ForgedMessage, ChangesNothing) {
  begin_attack();
  const Forgery& forgery = GetParam();
  const Outcome& outcome = undisturbed(kMode);
  Program program(slow_run(kMode));
  Intruder intruder([&, coordinator = program.pid()] {
    const VisibleRun run = await_run(coordinator);
    zmq::context_t context;
    std::int64_t heard = 0;
    const int attempts = until_the_end(coordinator, kMostAttempts, [&](int) {
      ForgedLine line(context, run.control, forgery.identity);
      line.hello(run.id, getpid());
      ToCoordinator message;
      forgery.fill(message);
      line.say(message, forgery.weights);
      line.listen(kMoment);
      heard += line.messages();
    });
    return nlohmann::json{{"attempts", attempts}, {"heard", heard}};
  });
  const ProgramEnd end = program.wait(kDeadline);
  const nlohmann::json told = intruder.told(kDeadline);
  EXPECT_GT(told.value("attempts", 0), 0);
  EXPECT_EQ(told.value("heard", 0), 0) << "the coordinator has answered";
  expect_unharmed(program, end, outcome);
}

// The own user's process gets as far as the handshake, another's not even there.
class TakenName : public testing::TestWithParam<std::tuple<const char*, Intruder::User>> {};
INSTANTIATE_TEST_SUITE_P(Of, TakenName,
                         testing::Combine(testing::Values("evaluator-0", "worker-0", "server-0"),
                                          testing::Values(Intruder::User::kAnother, Intruder::User::kOwn)),
                         kNameOfCase);

TEST_P(TakenName, GivesNeitherWeightsNorThePlace) {
  const auto [identity, user] = GetParam();
  begin_attack(user);
  const Outcome& outcome = undisturbed(kMode);
  Program program(slow_run(kMode));
  const auto deed = [name = std::string(identity), coordinator = program.pid()] {
    const VisibleRun run = await_run(coordinator);
    zmq::context_t context;
    std::int64_t heard = 0, floats = 0;
    // Whoever connects anew takes the place from the one before.
    until_the_end(coordinator, kMostAttempts, [&](int) {
      ForgedLine line(context, run.control, name);
      line.hello(run.id, getpid());
      line.listen(kMoment);
      heard += line.messages();
      floats += line.floats();
    });
    return nlohmann::json{{"heard", heard}, {"floats", floats}};
  };
  Intruder intruder(deed, user);
  const ProgramEnd end = program.wait(kDeadline);
  const nlohmann::json told = intruder.told(kDeadline);
  EXPECT_EQ(told.value("heard", 0), 0) << "the coordinator has answered";
  EXPECT_EQ(told.value("floats", 0), 0) << "weights of the run are in an intruder's hands";
  expect_unharmed(program, end, outcome);
}

}  // namespace
}  // namespace syncopate::attacks
