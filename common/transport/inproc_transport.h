// InProcTransport: ranks as threads of one process. A message is a pointer; the receiver reads the sender's memory.
#pragma once

#include <memory>

#include "common/rendezvous.h"
#include "common/transport/transport.h"

namespace syncopate {

// The state that the endpoints of one group share. Thread-safe.
class InProcHub {
 public:
  explicit InProcHub(int size);
  ~InProcHub();

  // Returns the endpoint of `rank`, which keeps the hub's state alive. Call it once per rank. When the endpoint is
  // destroyed, the others learn that this peer is lost.
  std::unique_ptr<Transport> endpoint(int rank);

 private:
  friend class InProcTransport;
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

// A rendezvous between threads. Thread-safe; one object serves all of them.
class InProcRendezvous final : public Rendezvous {
 public:
  InProcRendezvous();
  ~InProcRendezvous() override;

  Result<std::vector<std::string>> exchange(const std::string& group, int rank, int size, const std::string& value,
                                            TimePoint deadline) override;

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace syncopate
