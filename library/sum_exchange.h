// SumExchange: the mean, or the sum, of all ranks' gradients, in place; whoever calls makes the update. What the ranks
// must have alike in each step goes round with the gradients, as one number a rank.
#pragma once

#include <memory>
#include <string>

#include "allreduce/compression/compressed_reduction.h"
#include "allreduce/compression/reduction_history.h"
#include "common/codec/codec_config.h"
#include "common/param_layout.h"
#include "library/communicator.h"
#include "library/gradient_exchange.h"
#include "library/gradient_release.h"

namespace syncopate::library {

struct SumOptions {
  std::size_t bucket_bytes = 1 << 20;
  CodecConfig codec = {};  // how gradients travel
  bool elastic = false;    // keeps what is needed to repeat a step without a lost rank
  bool average = true;     // else gradients are sums
};

class SumExchange final : public GradientExchange {
 public:
  // An operation of all ranks. Fails with invalid argument, naming one rank, if their tensors or buckets differ.
  static Result<std::unique_ptr<SumExchange>> connect(std::shared_ptr<Group> group, const std::string& name,
                                                      const ParamLayout& layout, const SumOptions& options);

  // In a new group of an elastic job that has lost ranks, an operation of all that are left: goes on from `other`,
  // whose group has, with what the codec remembers. `steps` are those that the furthest rank has finished, and `giver`
  // is that rank.
  Status continue_from(SumExchange& other, std::int64_t steps, int giver);

  // Before begin_step: a number below kMostSaid that all ranks must say alike in this step; or that this rank has no
  // more batches: it gives zeros, and is compared with nobody.
  void say(std::uint32_t number) { said_ = number; }
  void say_joined() { said_ = 2 * kMostSaid; }
  // After finish_step: a rank that has said something else than this one; -1 if all have said the same.
  int differing() const;
  // After finish_step: the ranks that have no more batches, ascending.
  std::vector<int> joined() const;
  static constexpr std::uint32_t kMostSaid = std::uint32_t{1} << 22;

  const Group& group() const override { return communicator_->group(); }
  void begin_step(double learning_rate) override;
  bool has(std::size_t tensor) const override { return release_.is_ready(tensor); }
  void gradient(std::size_t tensor, std::span<float> values, bool is_absent) override;
  Result<SyncStats> finish_step() override;
  std::vector<std::size_t> absent_everywhere() const override;
  int missed() override { return communicator_->missed(); }
  Status leave() override;

 private:
  SumExchange(std::unique_ptr<Communicator> communicator, const ParamLayout& layout, std::vector<Range> buckets,
              const SumOptions& options);
  // Has gradients go through an arena of the collective's, which the codec works on.
  Status compress();
  // Sums one bucket, whose gradients are all there.
  void sum(std::size_t bucket);
  // On the communicator's thread.
  Status sum_compressed(std::size_t bucket, std::int64_t step);

  float& presence_of(std::size_t tensor);
  // What sums are multiplied by.
  float factor() const;
  bool has_joined(float said) const;

  const SumOptions options_;
  const ParamLayout layout_;
  const std::vector<Range> buckets_;
  GradientRelease release_;
  std::vector<std::span<float>> gradients_;  // by tensor, of this step
  // By bucket, a number for each of its tensors that goes round with it: the ranks that have the gradient, times
  // factor().
  std::vector<std::vector<float>> presence_;
  std::vector<float> alike_;  // by rank, behind the first bucket: what it has said, times factor()
  std::uint32_t said_ = 0;
  std::int64_t steps_ = 0;  // finished
  bool in_step_ = false;
  std::uint64_t last_ticket_ = 0;
  // With a codec:
  std::span<float> arena_;
  std::unique_ptr<allreduce::CompressedReduction> compressed_;
  allreduce::ReductionHistory history_;
  Duration codec_{};                            // spent in this step; on the communicator's thread
  std::unique_ptr<Communicator> communicator_;  // last: its thread works on all of the above
};

}  // namespace syncopate::library
