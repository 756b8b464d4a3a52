#include "experiments/cluster/control/message_rules.h"

#include <gtest/gtest.h>

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

TEST(MessageRules, LetNobodySendAMessageOfNoKind) {
  for (Role role : {Role::kWorker, Role::kServer, Role::kStandby, Role::kEvaluator}) {
    EXPECT_FALSE(may_send(role, ToCoordinator::KIND_NOT_SET));
  }
}

}  // namespace
}  // namespace syncopate::experiments
