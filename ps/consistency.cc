#include "ps/consistency.h"

#include <fmt/format.h>

#include <charconv>

namespace syncopate::ps {
namespace {
constexpr std::int64_t kLargestBound = 1000000;
}

Result<Consistency> Consistency::parse(std::string_view text) {
  Consistency consistency;
  if (text == "sync") {
    consistency.kind_ = Kind::kSync;
    return consistency;
  }
  if (text == "async") {
    consistency.kind_ = Kind::kAsync;
    return consistency;
  }
  constexpr std::string_view kPrefix = "bounded:";
  if (text.starts_with(kPrefix)) {
    const std::string_view number = text.substr(kPrefix.size());
    const char* end = number.data() + number.size();
    const auto [parsed_to, error] = std::from_chars(number.data(), end, consistency.bound_);
    if (error == std::errc() && parsed_to == end && !number.empty() && consistency.bound_ >= 0 &&
        consistency.bound_ <= kLargestBound) {
      consistency.kind_ = Kind::kBounded;
      return consistency;
    }
  }
  return Status(Code::kInvalidArgument,
                fmt::format("'{}' is not sync, async or bounded:k with k from 0 to {}", text, kLargestBound));
}

std::string Consistency::to_string() const {
  switch (kind_) {
    case Kind::kSync:
      return "sync";
    case Kind::kBounded:
      return fmt::format("bounded:{}", bound_);
    case Kind::kAsync:
      return "async";
  }
  return {};
}

bool Consistency::may_answer(std::int64_t clock, std::int64_t slowest) const {
  switch (kind_) {
    case Kind::kSync:
      return clock <= slowest;
    case Kind::kBounded:
      return clock - slowest <= bound_;
    case Kind::kAsync:
      return true;
  }
  return false;
}

}  // namespace syncopate::ps
