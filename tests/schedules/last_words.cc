#include "tests/schedules/last_words.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace syncopate::experiments {
namespace {

constexpr std::array kFatalSignals{SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
// How long after its deadline a schedule that is under way may still end by itself.
constexpr Duration kGrace = std::chrono::seconds(20);

// A signal's handler may use nothing else.
std::array<char, 4096> words_of_signals{};
std::array<char, 65536> stack_of_signals{};

void say_words(int signal) {
  (void)!write(STDERR_FILENO, words_of_signals.data(), std::strlen(words_of_signals.data()));
  ::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

LastWords::LastWords(Duration limit) : deadline_(SteadyClock().now() + limit) {
  const stack_t stack{.ss_sp = stack_of_signals.data(), .ss_flags = 0, .ss_size = stack_of_signals.size()};
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = say_words;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : kFatalSignals) sigaction(signal, &action, nullptr);
  watch_ = std::jthread([this](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!ended_.wait_until(lock, stop, deadline_ + kGrace, [] { return false; }) && !stop.stop_requested()) abort();
  });
}

LastWords::~LastWords() {
  for (const int signal : kFatalSignals) ::signal(signal, SIG_DFL);
}

void LastWords::set(const std::string& words) {
  const std::size_t length = std::min(words.size(), words_of_signals.size() - 1);
  std::copy_n(words.begin(), length, words_of_signals.begin());
  words_of_signals[length] = 0;
}

bool LastWords::is_late() const { return SteadyClock().now() > deadline_; }

}  // namespace syncopate::experiments
