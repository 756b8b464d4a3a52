// WorkerCodec: a worker's gradients, compressed to be pushed, and the answers to them, decompressed. What a codec loses
// of a gradient is added to the next one where the codec wants that (ErrorFeedback), which keeps the worker's velocity,
// too, where momentum is corrected. One thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/codec/codec.h"
#include "common/codec/error_feedback.h"
#include "common/os/aligned_buffer.h"
#include "common/param_layout.h"
#include "common/training_state.h"
#include "common/transport/transport.h"
#include "ps/compression.h"

namespace syncopate::ps {

class WorkerCodec {
 public:
  // `clock` outlives this object.
  WorkerCodec(const Compression& compression, const Clock& clock);

  // Takes the memory from which gradients of `buckets`, ranges of an arena of `arena_size` floats, are sent: `slots`
  // encodings of each may be on their way. Once, first. Fails as Transport::allocate does.
  // With `undoes_pushes`, what was kept back before the last push of each bucket is remembered until the next. `begins`
  // is where the arena's tensors begin.
  Status allocate(Transport& transport, std::span<const Range> buckets, std::size_t arena_size, std::size_t slots,
                  bool undoes_pushes = false, const TensorBegins& begins = {});

  // The pushes that follow are of this epoch.
  void begin_epoch(std::int64_t epoch);

  // What was kept back, in the name of `worker`: as restored it is that behind the last push, until take_up.
  void save(int worker, TrainingState& state) const;
  Status restore(int worker, const TrainingState& state);
  // The shard has applied so many pushes of the bucket: if the last was not among them, it is as if it had not been
  // made.
  void take_up(int worker, std::size_t bucket, std::int64_t applied);

  // The encoding of the bucket's gradient, in the transport's memory. It stays until the next of this bucket and slot,
  // which may come once that memory is no longer sent from.
  std::span<const std::byte> encode(const PushName& push, std::size_t bucket, std::size_t slot,
                                    std::span<const float> gradient);

  // Adds what the answer to `push` carries to the worker's weights. Fails with data loss, and leaves them as they are,
  // if that is no encoding of so many differences.
  Status apply_answer(const PushName& push, std::span<const std::byte> payload, std::span<float> weights);

  // The time that both have taken since this was asked last.
  Duration take_time();

 private:
  const Compression compression_;
  const Clock& clock_;
  Codec codec_;
  std::optional<ErrorFeedback> feedback_;
  // What was kept back before the last push of each bucket, and the velocity of that time; may be empty.
  AlignedBuffer before_;
  AlignedBuffer velocity_before_;
  std::vector<std::int64_t> clocks_;  // by bucket: of its last push; 0: none
  std::vector<Range> buckets_;
  std::size_t slots_ = 1;
  std::vector<std::span<std::byte>> rooms_;  // by bucket, then slot
  Duration time_{};

  // What is kept from push to push: its name in a state, what it is, and what it was before the last push.
  struct Memory {
    std::string name;
    std::string before_name;
    std::span<float> values;
    std::span<float> before;
  };
  std::vector<Memory> memories(int worker);
};

}  // namespace syncopate::ps
