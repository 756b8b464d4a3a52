#include "library/option_agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

namespace syncopate::library {
namespace {

constexpr const char* kFirst[] = {"mode", "update", "optimizer"};

// A line "NAME=VALUE" for each.
std::string to_text(const OptionTexts& options) {
  std::string text;
  for (const auto& [name, value] : options) {
    std::string line = name + '=' + value;
    std::ranges::replace(line, '\n', ' ');
    text += line + '\n';
  }
  return text;
}

OptionTexts from_text(const std::string& text) {
  OptionTexts options;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = std::min(line.find('='), line.size());
    options[line.substr(0, end)] = end < line.size() ? line.substr(end + 1) : "";
  }
  return options;
}

// "none on rank 0, int8 on ranks 1 and 2"; empty if all have the same.
std::string differences(const std::string& name, const std::vector<OptionTexts>& by_rank) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> values;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const auto found = by_rank[rank].find(name);
    const std::string value = found == by_rank[rank].end() ? "not given" : found->second;
    auto known = std::ranges::find(values, value, [](const auto& each) { return each.first; });
    if (known == values.end()) known = values.insert(known, {value, {}});
    known->second.push_back(rank);
  }
  if (values.size() < 2) return {};
  std::vector<std::string> texts;
  for (const auto& [value, ranks] : values) {
    texts.push_back(fmt::format("{} on rank{} {}", value, ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Status check_alike(const std::vector<OptionTexts>& by_rank) {
  std::set<std::string> names;
  for (const OptionTexts& options : by_rank) {
    for (const auto& [name, value] : options) names.insert(name);
  }
  std::vector<std::string> found;
  const auto look_at = [&](const std::string& name) {
    const std::string text = differences(name, by_rank);
    if (!text.empty()) found.push_back(name + ": " + text);
    return !text.empty();
  };
  if (std::ranges::none_of(kFirst, look_at)) std::ranges::for_each(names, look_at);
  if (found.empty()) return Status();
  return Status::invalid_argument(fmt::format("{}; all ranks must have the same", fmt::join(found, "; ")));
}

Status agree_on_options(Group& group, const std::string& name, const OptionTexts& own) {
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::vector<std::string> texts,
      group.rendezvous().exchange(name + "/options", group.rank(), group.size(), to_text(own), group.deadline()));
  std::vector<OptionTexts> by_rank;
  for (const std::string& text : texts) by_rank.push_back(from_text(text));
  return check_alike(by_rank);
}

}  // namespace syncopate::library
