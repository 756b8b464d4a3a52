// PatientTransport: a transport whose waits are extended after a standstill of some process (common/patience.h). Wraps
// another one, which carries the messages.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "common/patience.h"
#include "common/transport/forwarding_transport.h"

namespace syncopate {

class PatientTransport final : public ForwardingTransport {
 public:
  PatientTransport(std::unique_ptr<Transport> inner, std::shared_ptr<Patience> patience, const Clock& clock)
      : ForwardingTransport(std::move(inner)), patience_(std::move(patience)), clock_(clock) {}

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override {
    return patiently(deadline, [&](TimePoint until) { return wrapped().send(peer, header, payload, pending, until); });
  }
  Result<Message> receive(TimePoint deadline) override {
    return patiently(deadline, [&](TimePoint until) { return wrapped().receive(until); });
  }
  Result<Message> poll(TimePoint until) override { return wrapped().poll(until); }
  Status wait(const PendingSends& pending, TimePoint deadline) override {
    return patiently(deadline, [&](TimePoint until) { return wrapped().wait(pending, until); });
  }

 private:
  static Code code_of(const Status& status) { return status.code(); }
  static Code code_of(const Result<Message>& message) { return message.status().code(); }

  template <typename Call>
  auto patiently(TimePoint deadline, const Call& call) -> decltype(call(deadline)) {
    PatientWait wait(*patience_, deadline, clock_.now());
    TimePoint until = wait.next(clock_.now()).value_or(deadline);
    while (true) {
      auto done = call(until);
      if (done.ok() || code_of(done) != Code::kDeadlineExceeded) return done;
      const std::optional<TimePoint> next = wait.next(clock_.now());
      if (!next) return done;
      until = *next;
    }
  }

  const std::shared_ptr<Patience> patience_;
  const Clock& clock_;
};

}  // namespace syncopate
