#include "experiments/cluster/control/received_message.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <string>

#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::size_t kLongest = 4096;

bool is_shown(const FieldDescriptor& field) {
  static const std::array kNeverShown{
      control::Hello::descriptor()->FindFieldByNumber(control::Hello::kRunIdFieldNumber),
      control::Publish::descriptor()->FindFieldByNumber(control::Publish::kGroupFieldNumber),
      control::CheckpointReport::descriptor()->FindFieldByNumber(control::CheckpointReport::kPartFieldNumber)};
  return std::ranges::find(kNeverShown, &field) == kNeverShown.end();
}

bool has_texts(const Descriptor& type) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.type() == FieldDescriptor::TYPE_STRING) return true;
    if (field.type() == FieldDescriptor::TYPE_MESSAGE && has_texts(*field.message_type())) return true;
  }
  return false;
}

void make_printable(Message& message);

void make_printable(Message& message, const Reflection& reflection, const FieldDescriptor& field) {
  const int count = field.is_repeated() ? reflection.FieldSize(message, &field) : 1;
  for (int i = 0; i < count; ++i) {
    if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
      make_printable(field.is_repeated() ? *reflection.MutableRepeatedMessage(&message, &field, i)
                                         : *reflection.MutableMessage(&message, &field));
    } else if (field.is_repeated()) {
      reflection.SetRepeatedString(&message, &field, i,
                                   printable(reflection.GetRepeatedString(message, &field, i), kLongest));
    } else {
      reflection.SetString(&message, &field, printable(reflection.GetString(message, &field), kLongest));
    }
  }
}

// Changes the fields that are set, and those of nested messages.
void make_printable(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool is_text = field->type() == FieldDescriptor::TYPE_STRING && is_shown(*field);
    const bool holds_text = field->type() == FieldDescriptor::TYPE_MESSAGE && has_texts(*field->message_type());
    if (is_text || holds_text) make_printable(message, reflection, *field);
  }
}

}  // namespace

bool may_send(Role role, control::ToCoordinator::KindCase kind) {
  using control::ToCoordinator;
  const bool trains = role == Role::kWorker;
  const bool has_peers = trains || serves(role);
  switch (kind) {
    case ToCoordinator::kHello:
    case ToCoordinator::kHeartbeat:
    case ToCoordinator::kClockQuestion:
    case ToCoordinator::kClockReport:
    case ToCoordinator::kFact:
    case ToCoordinator::kFailure:
    case ToCoordinator::kFinished:
      return true;
    case ToCoordinator::kPublish:
    case ToCoordinator::kJoinRequest:
    case ToCoordinator::kTrouble:
    case ToCoordinator::kCheckpointReport:
    case ToCoordinator::kStepAnnouncement:
    case ToCoordinator::kTrace:
      return has_peers;
    case ToCoordinator::kSteps:
    case ToCoordinator::kEpochQuestion:
    case ToCoordinator::kSnapshot:
    case ToCoordinator::kLocalState:
    case ToCoordinator::kLeaveQuestion:
    case ToCoordinator::kFinishQuestion:
    case ToCoordinator::kBatchRequest:
      return trains;
    case ToCoordinator::kNotFinite:
      return trains || role == Role::kEvaluator;
    case ToCoordinator::kMissingWorker:
      return serves(role);
    case ToCoordinator::kEvaluation:
      return role == Role::kEvaluator;
    case ToCoordinator::KIND_NOT_SET:
      return false;
  }
  return false;
}

void make_printable(control::ToCoordinator& message) { make_printable(static_cast<Message&>(message)); }

}  // namespace syncopate::experiments
