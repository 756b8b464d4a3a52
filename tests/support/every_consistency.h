// Every kind of consistency that there is, with typical parameters: for tests that hold for all of them. They follow
// from consistency_traits(), so that a new kind is tested without being named here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ps/policy/consistency.h"

namespace syncopate::ps {

// Returns the kind's text with its parameters: each at its least and `more` above, if the kind allows so much.
inline std::string consistency_example(const ConsistencyTraits& traits, std::int64_t more) {
  std::string text(traits.name);
  std::int64_t least = 0;
  for (const ConsistencyParameter& parameter : traits.parameters) {
    if (parameter.name.empty()) break;
    least = std::min(std::max(parameter.least, least) + more, parameter.most);
    text += ":" + std::to_string(least);
  }
  return text;
}

// Returns the texts of all kinds of which `test` is true, for jobs of two workers or more: each with the least
// parameters, with those that follow, and, where it has backup workers or a quorum, with one, as in "sync+1"
// (consistency_of).
inline std::vector<std::string> every_consistency(ConsistencyTest test = [](const ConsistencyTraits&) {
  return true;
}) {
  std::vector<std::string> texts;
  for (const ConsistencyTraits& traits : consistency_traits()) {
    if (!test(traits)) continue;
    texts.push_back(consistency_example(traits, 0));
    if (!traits.parameters[0].name.empty()) texts.push_back(consistency_example(traits, 1));
    if (traits.backup_workers || traits.quorum) texts.push_back(texts.back() + "+1");
  }
  return texts;
}

// Returns those of every_consistency() that serve row-sparse tables.
inline std::vector<std::string> every_consistency_of_tables() {
  std::vector<std::string> texts = every_consistency([](const ConsistencyTraits& traits) { return traits.tables; });
  std::erase_if(texts, [](const std::string& text) { return text.find('+') != text.npos; });
  return texts;
}

}  // namespace syncopate::ps
