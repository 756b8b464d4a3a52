#include <fmt/format.h>

#include <limits>

#include "library/api_state.h"

namespace syncopate::api {
namespace {

// Numbers of a tensor: with more, sizes in bytes would leave 64 bits.
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

Code code_of(const ::syncopate::Status& status) {
  switch (status.code()) {
    case ::syncopate::Code::kOk:
      return Code::kOk;
    case ::syncopate::Code::kInvalidArgument:
    case ::syncopate::Code::kNotFound:
      return Code::kInvalidArgument;
    case ::syncopate::Code::kPeerLost:
    case ::syncopate::Code::kDeadlineExceeded:
    case ::syncopate::Code::kCancelled:
      return Code::kPeerLost;
    default:
      return Code::kFailed;
  }
}

// `who` is lost, as describe() has it; empty if that is not known.
Status status_of(const ::syncopate::Status& status, PeerLost lost, const std::string& who) {
  if (status.ok()) return Status();
  std::string where = lost.operation;
  if (lost.step >= 0) where += fmt::format(" in step {}", lost.step);
  std::string text = fmt::format("{}: {}", where, status.message());
  if (code_of(status) != Code::kPeerLost) return Status(code_of(status), std::move(text));
  if (!who.empty()) text = fmt::format("{}: {}", who, where);
  return Status(std::move(lost), std::move(text));
}

}  // namespace

Status status_of(const ::syncopate::Status& status, const library::Group& group, const std::string& operation,
                 std::int64_t step, int missed) {
  PeerLost lost{.operation = operation, .step = step};
  if (status.ok()) return Status();
  std::string who;
  if (const std::optional<library::Loss> loss = group.loss_behind(status, missed)) {
    who = library::describe(*loss);
    lost.rank = loss->process.rank;
    lost.process = loss->process.name;
    lost.pid = loss->process.pid;
    lost.host = loss->process.host;
    lost.has_ended = loss->has_ended;
  }
  return status_of(status, std::move(lost), who);
}

Status status_of(const ::syncopate::Status& status, const std::string& operation) {
  return status_of(status, PeerLost{.operation = operation}, "");
}

::syncopate::Result<::syncopate::ParamLayout> engine_layout(const ParamLayout& layout) {
  if (layout.tensors().empty()) return ::syncopate::Status::invalid_argument("the layout has no tensors");
  ::syncopate::ParamLayout own;
  for (const ParamLayout::Tensor& tensor : layout.tensors()) {
    std::int64_t elements = 1;
    for (const std::int64_t dimension : tensor.shape) {
      if (dimension < 1 || dimension > kMostElements / elements) {
        return ::syncopate::Status::invalid_argument(fmt::format(
            "tensor '{}' has a dimension of {}: each must be at least 1, and a tensor has at most 2^40 numbers",
            tensor.name, dimension));
      }
      elements *= dimension;
    }
    own.add(tensor.name, tensor.shape);
  }
  return own;
}

}  // namespace syncopate::api
