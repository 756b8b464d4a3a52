// WorkerCodec: compresses the gradients that a worker pushes, and decompresses the responses. If the codec wants error
// feedback (ErrorFeedback), what it loses of a gradient is added to the next one; with momentum correction the worker's
// velocity is kept there, too. One thread.
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
  // `clock` must outlive this object.
  WorkerCodec(const Compression& compression, const Clock& clock);

  // Allocates the memory from which gradients of `buckets`, ranges of an arena of `arena_size` floats, are sent:
  // `slots` encodings of each bucket may be in flight. Call it once, first. Fails as Transport::allocate does. With
  // `undoes_pushes`, the residual from before the last push of each bucket is kept until the next push. `tensors` are
  // the arena's.
  Status allocate(Transport& transport, std::span<const Range> buckets, std::size_t arena_size, std::size_t slots,
                  bool undoes_pushes = false, const TensorRanges& tensors = {});

  // The pushes that follow belong to this epoch.
  void begin_epoch(std::int64_t epoch);

  // Save and restore the residuals under the name of `worker`. After restore they are those after the last push, until
  // take_up.
  void save(int worker, TrainingState& state) const;
  Status restore(int worker, const TrainingState& state);
  // The shard has applied `applied` pushes of the bucket. If the last push was not among them, undoes it.
  void take_up(int worker, std::size_t bucket, std::int64_t applied);

  // Returns the encoding of the bucket's gradient, in the transport's memory. It stays valid until the next call for
  // this bucket and slot, which requires that nothing is still being sent from that memory.
  std::span<const std::byte> encode(const PushName& push, std::size_t bucket, std::size_t slot,
                                    std::span<const float> gradient);

  // Adds the differences that the response to `push` carries to the worker's weights. Fails with data loss, and leaves
  // the weights unchanged, if the payload does not encode that many differences.
  Status apply_answer(const PushName& push, std::span<const std::byte> payload, std::span<float> weights);

  // Both return the time that encoding and decoding have taken since the last take_time().
  Duration time() const { return time_; }
  Duration take_time();

 private:
  const Compression compression_;
  const Clock& clock_;
  Codec codec_;
  std::optional<ErrorFeedback> feedback_;
  // Residuals and velocity from before the last push of each bucket; may be empty.
  AlignedBuffer before_;
  AlignedBuffer velocity_before_;
  std::vector<std::int64_t> clocks_;  // by bucket: clock of its last push; 0 for none
  std::vector<Range> buckets_;
  std::size_t slots_ = 1;
  std::vector<std::span<std::byte>> rooms_;  // by bucket, then slot
  Duration time_{};

  // One array that is kept from push to push: its name in a state, its values, and its values before the last push.
  struct Memory {
    std::string name;
    std::string before_name;
    std::span<float> values;
    std::span<float> before;
  };
  std::vector<Memory> memories(int worker);
};

}  // namespace syncopate::ps
