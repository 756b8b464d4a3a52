// Sleeping on a word of memory that processes share (futex(2)).
#pragma once

#include <atomic>
#include <cstdint>

#include "common/clock.h"

namespace syncopate {

// Sleeps while `word` is `expected`, until somebody wakes it or `timeout` is over. May return early.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout);

// Wakes all that sleep on `word`, and says how many did.
int futex_wake(const std::atomic<std::uint32_t>& word);

}  // namespace syncopate
