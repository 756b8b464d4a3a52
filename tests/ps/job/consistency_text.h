// A consistency with its backup workers, or with its quorum, in one text, for tables of tests: "sync+1",
// "local-sgd:2+1".
#pragma once

#include <string>

#include "ps/policy/consistency.h"

namespace syncopate::ps {

inline Consistency consistency_of(const std::string& text) {
  const std::size_t plus = text.find('+');
  const Consistency consistency = *Consistency::parse(text.substr(0, plus));
  if (plus == text.npos) return consistency;
  if (consistency.traits().quorum) return consistency.with_quorum(*Quorum::parse(text.substr(plus + 1)));
  return consistency.with_backup_workers(std::stoi(text.substr(plus + 1)));
}

}  // namespace syncopate::ps
