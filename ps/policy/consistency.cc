#include "ps/policy/consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace syncopate::ps {
namespace {

constexpr std::int64_t kLargest = 1000000;

struct Form {
  Consistency::Kind kind;
  std::string_view name;
  std::optional<std::int64_t> least;  // that its number may be; empty for one without a number
};

constexpr std::array<Form, 6> kForms{{{Consistency::Kind::kSync, "sync", std::nullopt},
                                      {Consistency::Kind::kBounded, "bounded", 0},
                                      {Consistency::Kind::kSoftSync, "softsync", 1},
                                      {Consistency::Kind::kAsync, "async", std::nullopt},
                                      {Consistency::Kind::kLocalSgd, "local-sgd", 1},
                                      {Consistency::Kind::kEasgd, "easgd", 1}}};

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [parsed_to, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || parsed_to != end || text.empty()) return std::nullopt;
  return number;
}

}  // namespace

Result<Consistency> Consistency::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  for (const Form& form : kForms) {
    if (text.substr(0, colon) != form.name || form.least.has_value() != (colon != text.npos)) continue;
    Consistency consistency;
    consistency.kind_ = form.kind;
    if (!form.least) return consistency;
    const std::optional<std::int64_t> number = number_of(text.substr(colon + 1));
    if (!number || *number < *form.least || *number > kLargest) break;
    consistency.parameter_ = *number;
    return consistency;
  }
  return Status::invalid_argument(fmt::format("'{}' is not {}", text, forms()));
}

std::string Consistency::forms() {
  return fmt::format(
      "sync, bounded:k (k from 0 to {0}), softsync:n (n from 1 to the workers), async, local-sgd:k or easgd:k (k from "
      "1 to {0})",
      kLargest);
}

Consistency Consistency::with_backup_workers(int backup_workers) const {
  Consistency consistency = *this;
  consistency.backup_workers_ = backup_workers;
  return consistency;
}

std::string Consistency::to_string() const {
  const auto form = std::ranges::find(kForms, kind_, &Form::kind);
  return form->least ? fmt::format("{}:{}", form->name, parameter_) : std::string(form->name);
}

int Consistency::pushes_an_update(int workers, int live) const {
  if (updates_together()) return std::min(workers - backup_workers_, live);
  if (kind_ == Kind::kSoftSync) return std::max(1, static_cast<int>(workers / parameter_));
  return 1;
}

}  // namespace syncopate::ps
