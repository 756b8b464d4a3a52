// SumExchange: the mean of all ranks' gradients, in place; whoever calls makes the update.
#pragma once

#include <memory>
#include <string>

#include "common/param_layout.h"
#include "library/communicator.h"
#include "library/gradient_exchange.h"
#include "library/gradient_release.h"

namespace syncopate::library {

class SumExchange final : public GradientExchange {
 public:
  // An operation of all ranks. Fails with invalid argument, naming one rank, if their tensors or buckets differ.
  static Result<std::unique_ptr<SumExchange>> connect(std::shared_ptr<Group> group, const std::string& name,
                                                      const ParamLayout& layout, std::size_t bucket_bytes);

  const Group& group() const override { return communicator_->group(); }
  void begin_step(double learning_rate) override;
  bool has(std::size_t tensor) const override { return release_.is_ready(tensor); }
  void gradient(std::size_t tensor, std::span<float> values, bool is_absent) override;
  Result<SyncStats> finish_step() override;
  std::vector<std::size_t> absent_everywhere() const override;
  int missed() override { return communicator_->missed(); }
  Status leave() override;

 private:
  SumExchange(std::unique_ptr<Communicator> communicator, const ParamLayout& layout, std::vector<Range> buckets);

  float& presence_of(std::size_t tensor);

  GradientRelease release_;
  std::vector<std::span<float>> gradients_;  // by tensor, of this step
  // By bucket, a number for each of its tensors that goes round with it: the share of ranks that have the gradient.
  std::vector<std::vector<float>> presence_;
  std::uint64_t last_ticket_ = 0;
  std::unique_ptr<Communicator> communicator_;  // last: it works on all of the above
};

}  // namespace syncopate::library
