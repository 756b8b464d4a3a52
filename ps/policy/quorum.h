// Quorum: how many workers a meeting waits for, and how long it waits for more. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate::ps {

struct Quorum {
  int workers = 0;   // who must have pushed; 0: all
  Duration grace{};  // how long, from then on, the meeting waits for the others

  // Parses "3" or "3+200ms". Fails with invalid argument, saying what would be right.
  static Result<Quorum> parse(std::string_view text);
  // The forms that parse() accepts, for help texts.
  static std::string forms();
  // Returns the text that parse() reads; "" for all.
  std::string to_string() const;

  bool is_all() const { return workers == 0; }
  bool operator==(const Quorum&) const = default;
};

}  // namespace syncopate::ps
