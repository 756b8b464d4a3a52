// The ranks of a job and how they meet, as Python calls it. Tensors come as addresses, which the caller keeps valid.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "library/group.h"
#include "module/callback_rendezvous.h"

namespace syncopate::python {

using Address = std::uintptr_t;

inline std::span<float> floats_at(Address address, std::size_t count) {
  return {reinterpret_cast<float*>(address), count};
}

// A group together with what it meets through.
struct JoinedGroup {
  explicit JoinedGroup(nanobind::callable exchange) : rendezvous(std::move(exchange)) {}

  CallbackRendezvous rendezvous;
  std::shared_ptr<library::Group> group;
};

// Shares both.
inline std::shared_ptr<library::Group> group_of(const std::shared_ptr<JoinedGroup>& joined) {
  return {joined, joined->group.get()};
}

// Adds RendezvousServer, TcpRendezvous, Group, Communicator, SyncStats and listener_at(). Requires Tracer.
void define_job(nanobind::module_& module);

}  // namespace syncopate::python
