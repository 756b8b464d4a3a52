// A consistency with its backup workers in one text, for tables of tests: "sync+1".
#pragma once

#include <string>

#include "ps/policy/consistency.h"

namespace syncopate::ps {

inline Consistency consistency_of(const std::string& text) {
  const std::size_t plus = text.find('+');
  const Consistency consistency = *Consistency::parse(text.substr(0, plus));
  return plus == text.npos ? consistency : consistency.with_backup_workers(std::stoi(text.substr(plus + 1)));
}

}  // namespace syncopate::ps
