#include "experiments/cluster/control/received_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace syncopate::experiments {
namespace {

using control::ToCoordinator;

TEST(MessageRules, GiveEveryKindOfMessageToSomebody) {
  const google::protobuf::OneofDescriptor& kinds = *ToCoordinator::descriptor()->oneof_decl(0);
  for (int i = 0; i < kinds.field_count(); ++i) {
    const auto kind = static_cast<ToCoordinator::KindCase>(kinds.field(i)->number());
    bool anybody = false;
    for (Role role : {Role::kWorker, Role::kServer, Role::kStandby, Role::kEvaluator}) anybody |= may_send(role, kind);
    EXPECT_TRUE(anybody) << kinds.field(i)->name();
  }
}

TEST(MessageRules, LetTheEvaluatorAloneSayHowGoodAModelIs) {
  for (Role role : {Role::kWorker, Role::kServer, Role::kStandby}) {
    EXPECT_FALSE(may_send(role, ToCoordinator::kEvaluation)) << name_of(role);
  }
  EXPECT_TRUE(may_send(Role::kEvaluator, ToCoordinator::kEvaluation));
}

TEST(MessageRules, LetWorkersAloneSayWhatIsTrained) {
  for (const auto kind :
       {ToCoordinator::kSnapshot, ToCoordinator::kSteps, ToCoordinator::kLocalState, ToCoordinator::kFinishQuestion,
        ToCoordinator::kLeaveQuestion, ToCoordinator::kBatchRequest}) {
    for (Role role : {Role::kServer, Role::kStandby, Role::kEvaluator}) EXPECT_FALSE(may_send(role, kind)) << kind;
    EXPECT_TRUE(may_send(Role::kWorker, kind)) << kind;
  }
}

TEST(MessageRules, LetServersAloneMissAWorker) {
  EXPECT_TRUE(may_send(Role::kServer, ToCoordinator::kMissingWorker));
  EXPECT_FALSE(may_send(Role::kWorker, ToCoordinator::kMissingWorker));
}

TEST(MessageRules, LetWorkersAndWhatServesTraceSteps) {
  for (Role role : {Role::kWorker, Role::kServer, Role::kStandby}) {
    EXPECT_TRUE(may_send(role, ToCoordinator::kTrace)) << name_of(role);
  }
  EXPECT_FALSE(may_send(Role::kEvaluator, ToCoordinator::kTrace));
}

TEST(MessageRules, LetNobodySendAMessageOfNoKind) {
  for (Role role : {Role::kWorker, Role::kServer, Role::kStandby, Role::kEvaluator}) {
    EXPECT_FALSE(may_send(role, ToCoordinator::KIND_NOT_SET));
  }
}

// Clears the screen and sets the window's title.
const std::string kHostile = "\x1b[2J\x1b]0;owned\x07";
const std::string kVisible = "\\x1b[2J\\x1b]0;owned\\x07";

TEST(PrintableMessage, ShowsWhatWouldDriveATerminal) {
  control::ToCoordinator message;
  message.mutable_failure()->set_message(kHostile);
  message.mutable_failure()->set_operation("one line\nand a forged one");
  make_printable(message);
  EXPECT_EQ(message.failure().message(), kVisible);
  EXPECT_EQ(message.failure().operation(), "one line\\nand a forged one");
}

TEST(PrintableMessage, ReachesMessagesWithinMessages) {
  control::ToCoordinator trouble, heartbeat;
  trouble.mutable_trouble()->mutable_failure()->set_message(kHostile);
  heartbeat.mutable_heartbeat()->mutable_collective()->set_what(kHostile);
  make_printable(trouble);
  make_printable(heartbeat);
  EXPECT_EQ(trouble.trouble().failure().message(), kVisible);
  EXPECT_EQ(heartbeat.heartbeat().collective().what(), kVisible);
}

TEST(PrintableMessage, HasEveryKindOfTextThatIsShown) {
  control::ToCoordinator hello, fact, report;
  hello.mutable_hello()->set_host(kHostile);
  fact.mutable_fact()->set_name(kHostile);
  fact.mutable_fact()->set_value(kHostile);
  report.mutable_checkpoint_report()->set_reason(kHostile);
  report.mutable_checkpoint_report()->set_writer(kHostile);
  for (control::ToCoordinator* message : {&hello, &fact, &report}) make_printable(*message);
  EXPECT_EQ(hello.hello().host(), kVisible);
  EXPECT_EQ(fact.fact().name(), kVisible);
  EXPECT_EQ(fact.fact().value(), kVisible);
  EXPECT_EQ(report.checkpoint_report().reason(), kVisible);
  EXPECT_EQ(report.checkpoint_report().writer(), kVisible);
}

TEST(PrintableMessage, LeavesAloneWhatIsComparedOrParsed) {
  control::ToCoordinator hello, publish, report;
  hello.mutable_hello()->set_run_id("run\n7");
  publish.mutable_publish()->set_group("data\t1");
  publish.mutable_publish()->set_value("\x1b\xff");
  report.mutable_checkpoint_report()->set_part("{\n}");
  for (control::ToCoordinator* message : {&hello, &publish, &report}) make_printable(*message);
  EXPECT_EQ(hello.hello().run_id(), "run\n7");
  EXPECT_EQ(publish.publish().group(), "data\t1");
  EXPECT_EQ(publish.publish().value(), "\x1b\xff");
  EXPECT_EQ(report.checkpoint_report().part(), "{\n}");
}

TEST(PrintableMessage, CutsWhatIsEndless) {
  control::ToCoordinator message;
  message.mutable_heartbeat()->set_operation(std::string(1 << 20, 'x'));
  make_printable(message);
  EXPECT_EQ(message.heartbeat().operation().size(), 4096u);
}

}  // namespace
}  // namespace syncopate::experiments
