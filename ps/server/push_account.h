// PushAccount: what a shard's thread does with each push, told to the clock, which lets that much virtual time pass,
// and to a tracer. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "common/trace/tracer.h"
#include "ps/server/shard.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

class PushAccount {
 public:
  // `number` is the shard's. The clock and the tracer, which may be null, must outlive this object.
  PushAccount(int number, const Clock& clock, Tracer* tracer) : number_(number), clock_(clock), tracer_(tracer) {}

  // Returns the span of dealing with this message of a worker: of nothing if it is no push, or is not traced.
  TraceSpan begin(int worker, const wire::Header& message, std::size_t payload_bytes) const;

  // The shard has accepted this push. If that has led to an update, it took from the beginning of `span` to now: it has
  // added up the gradients that had waited for it.
  void accepted(const wire::Push& push, const Shard& shard, TraceSpan& span);

 private:
  // By chunk: the pushes since its last update, and the version that this left.
  struct Pushes {
    int waiting = 0;
    std::int64_t version = 0;
  };

  const int number_;
  const Clock& clock_;
  Tracer* const tracer_;
  std::vector<Pushes> pushes_;
};

}  // namespace syncopate::ps
