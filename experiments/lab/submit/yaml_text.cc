#include "experiments/lab/submit/yaml_text.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string_view>

namespace syncopate::experiments {
namespace {

using nlohmann::ordered_json;

// Words that YAML 1.1 takes for a truth value or for nothing, in whatever case.
bool is_reserved(std::string_view text) {
  constexpr std::string_view kWords[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(kWords, lower) != std::end(kWords);
}

// Whether the text needs no quotes: what begins as a number, a date or a mark of YAML does, and what has a character
// beyond these.
bool is_plain(std::string_view text) {
  const auto is_allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("-_./=+@:,").find(static_cast<char>(c)) != std::string_view::npos;
  };
  const std::size_t first = text.find_first_not_of("-/");
  const bool begins_with_letter =
      first != std::string_view::npos && std::isalpha(static_cast<unsigned char>(text[first])) != 0;
  return begins_with_letter && !text.starts_with("---") && text.back() != ':' &&
         std::ranges::all_of(text, is_allowed) && !is_reserved(text);
}

void emit_text(YAML::Emitter& out, const std::string& text) {
  if (!is_plain(text)) out << YAML::DoubleQuoted;
  out << text;
}

void emit(YAML::Emitter& out, const ordered_json& value) {
  if (value.is_object()) {
    if (value.empty()) out << YAML::Flow;
    out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      out << YAML::Key;
      emit_text(out, key);
      out << YAML::Value;
      emit(out, member);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const ordered_json& element : value) emit(out, element);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    emit_text(out, value.get_ref<const std::string&>());
  } else if (value.is_boolean()) {
    out << value.get<bool>();
  } else {
    out << value.get<std::int64_t>();
  }
}

}  // namespace

std::string yaml_text(const std::vector<ordered_json>& documents) {
  std::string text;
  for (const ordered_json& document : documents) {
    YAML::Emitter out;
    emit(out, document);
    text += "---\n";
    text += out.c_str();
    text += "\n";
  }
  return text;
}

}  // namespace syncopate::experiments
