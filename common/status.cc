#include "common/status.h"

namespace syncopate {

const char* name_of(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kNotFound:
      return "not found";
    case Code::kDataLoss:
      return "data loss";
    case Code::kDeadlineExceeded:
      return "deadline exceeded";
    case Code::kPeerLost:
      return "peer lost";
    case Code::kCancelled:
      return "cancelled";
    case Code::kResourceExhausted:
      return "resource exhausted";
    case Code::kInternal:
      return "internal error";
  }
  return "unknown";
}

Status Status::in(const std::string& where) const { return ok() ? Status() : Status(code_, where + ": " + message_); }

}  // namespace syncopate
