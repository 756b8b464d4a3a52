// Waits on a word of memory that processes share (futex(2)).
#pragma once

#include <atomic>
#include <cstdint>

#include "common/clock.h"

namespace syncopate {

// Sleeps while `word` is `expected`, until it is woken or `timeout` has passed. May return early.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout);

// Wakes all threads that sleep on `word`, and returns their number.
int futex_wake(const std::atomic<std::uint32_t>& word);

}  // namespace syncopate
