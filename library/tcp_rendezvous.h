// TcpRendezvous: a member's side of a RendezvousServer. A connection for each exchange, so that threads do not wait for
// each other. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/os/file_descriptor.h"
#include "common/rendezvous.h"

namespace syncopate::library {

class TcpRendezvous final : public Rendezvous {
 public:
  // The server listens at `address`, "HOST:PORT", or will. `prefix` tells the jobs apart that a process has one after
  // another. Fails as resolve() does.
  static Result<std::unique_ptr<TcpRendezvous>> make(const std::string& address, std::string prefix);

  // Until an exchange has succeeded, a server that does not answer is not there yet; afterwards it is lost. Fails with
  // invalid argument if the members do not fit together.
  Result<std::vector<std::string>> exchange(const std::string& group, int rank, int size, const std::string& value,
                                            TimePoint deadline) override;

  // What names of groups begin with at the server.
  const std::string& prefix() const { return prefix_; }

  // Ends all waits, now and from now on, with cancelled.
  void interrupt();

  // Another with the same server and prefix, to be interrupted by itself.
  Result<std::unique_ptr<TcpRendezvous>> another() const { return make(address_, prefix_); }

 private:
  TcpRendezvous(std::string address, std::string prefix, FileDescriptor wake)
      : address_(std::move(address)), prefix_(std::move(prefix)), wake_(std::move(wake)) {}

  Result<FileDescriptor> connect(TimePoint deadline) const;
  Status send(int socket, const std::string& bytes, TimePoint deadline) const;
  Result<std::vector<std::string>> receive(int socket, TimePoint deadline) const;
  Status wait(int socket, short events, TimePoint deadline) const;

  const std::string address_;
  const std::string prefix_;
  const FileDescriptor wake_;  // an eventfd, readable once interrupted
  const SteadyClock clock_;
  std::atomic<bool> has_met_ = false;
};

}  // namespace syncopate::library
