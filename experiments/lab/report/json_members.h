// JsonMembers: reads the members of a JSON object that is not trusted. For the readers of results alone.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/text/printable_text.h"

namespace syncopate::experiments {

using ReadJson = nlohmann::json;

// Fails with data loss if the text is no whole JSON object.
inline Result<ReadJson> json_object_in(std::string_view text) {
  ReadJson json = ReadJson::parse(text, nullptr, false);
  if (json.is_discarded()) return Status::data_loss("is not whole, or no JSON");
  if (!json.is_object()) return Status::data_loss("is no JSON object");
  return json;
}

// Reads an object's members by name. The first one that is missing, or of another kind, is the error.
class JsonMembers {
 public:
  JsonMembers(const ReadJson& object, std::string& error) : object_(object), error_(error) {}

  double number(const char* name) const { return maybe_number(name).value_or(0); }

  // Returns none for null and for a missing member.
  std::optional<double> maybe_number(const char* name) const {
    const ReadJson* member = find(name);
    if (member == nullptr || member->is_null()) return std::nullopt;
    if (!member->is_number()) return refuse<std::optional<double>>(name, "a number");
    return member->get<double>();
  }
  std::int64_t count(const char* name) const {
    const ReadJson* member = find(name);
    if (member == nullptr) return 0;
    if (!member->is_number_integer()) return refuse<std::int64_t>(name, "a whole number");
    return member->get<std::int64_t>();
  }
  std::string text(const char* name) const {
    const ReadJson* member = find(name);
    if (member == nullptr) return {};
    if (!member->is_string()) return refuse<std::string>(name, "a text");
    return printable(member->get<std::string>());
  }
  // Returns a text as it stands: whoever shows it must make it printable.
  std::string lines(const char* name) const {
    const ReadJson* member = find(name);
    if (member == nullptr) return {};
    return member->is_string() ? member->get<std::string>() : refuse<std::string>(name, "a text");
  }
  JsonMembers object(const char* name) const {
    static const ReadJson kEmpty = ReadJson::object();
    const ReadJson* member = find(name);
    if (member == nullptr || member->is_null()) return {kEmpty, error_};
    if (!member->is_object()) refuse<int>(name, "an object");
    return {member->is_object() ? *member : kEmpty, error_};
  }
  // Returns false for a missing member.
  bool flag(const char* name) const {
    const ReadJson* member = find(name);
    if (member == nullptr) return false;
    return member->is_boolean() ? member->get<bool>() : refuse<bool>(name, "true or false");
  }
  bool has(const char* name) const {
    const ReadJson* member = find(name);
    return member != nullptr && !member->is_null();
  }
  std::optional<std::int64_t> maybe_count(const char* name) const {
    return has(name) ? std::optional(count(name)) : std::nullopt;
  }
  // Returns an empty list if it is missing. It is not copied, since that would recurse once for each level of nesting.
  const ReadJson& list(const char* name) const {
    static const ReadJson kEmpty = ReadJson::array();
    const ReadJson* member = find(name);
    if (member == nullptr) return kEmpty;
    if (!member->is_array()) refuse<int>(name, "a list");
    return member->is_array() ? *member : kEmpty;
  }
  // Returns them as they stand.
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> all;
    for (const ReadJson& text : list(name)) {
      all.push_back(text.is_string() ? text.get<std::string>() : refuse<std::string>(name, "a list of texts"));
    }
    return all;
  }
  // Returns no number for null, which stands for it in JSON.
  std::vector<double> numbers(const char* name) const {
    std::vector<double> all;
    for (const ReadJson& number : list(name)) {
      if (!number.is_number() && !number.is_null()) refuse<int>(name, "a list of numbers");
      all.push_back(number.is_number() ? number.get<double>() : std::numeric_limits<double>::quiet_NaN());
    }
    return all;
  }
  // Returns the members of an object of a list.
  JsonMembers of(const ReadJson& object) const { return {object, error_}; }
  void require(const char* name) const {
    if (find(name) == nullptr && error_.empty()) error_ = fmt::format("has no {}", name);
  }

 private:
  const ReadJson* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  template <typename T>
  T refuse(const char* name, const char* kind) const {
    if (error_.empty()) error_ = fmt::format("{} must be {}", name, kind);
    return T{};
  }

  const ReadJson& object_;
  std::string& error_;
};

}  // namespace syncopate::experiments
