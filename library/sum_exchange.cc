#include "library/sum_exchange.h"

#include <utility>

namespace syncopate::library {

Result<std::unique_ptr<SumExchange>> SumExchange::connect(std::shared_ptr<Group> group, const std::string& name,
                                                          const ParamLayout& layout, std::size_t bucket_bytes) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> communicator, Communicator::connect(std::move(group), name));
  std::vector<Range> buckets = buckets_in_backward_order(layout, bucket_bytes);
  SYNCOPATE_RETURN_IF_ERROR(communicator->prove_same(layout, buckets));
  return std::unique_ptr<SumExchange>(new SumExchange(std::move(communicator), layout, std::move(buckets)));
}

SumExchange::SumExchange(std::unique_ptr<Communicator> communicator, const ParamLayout& layout,
                         std::vector<Range> buckets)
    : release_(layout, buckets), gradients_(layout.tensors().size()), communicator_(std::move(communicator)) {
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    presence_.emplace_back(release_.tensors_of(bucket).size());
  }
}

void SumExchange::begin_step(double /*learning_rate*/) { release_.begin(); }

void SumExchange::gradient(std::size_t tensor, std::span<float> values, bool is_absent) {
  gradients_[tensor] = values;
  presence_of(tensor) = is_absent ? 0.0f : 1.0f;
  release_.ready(tensor, [this](std::size_t bucket) {
    std::vector<std::span<float>> parts;
    for (const std::size_t member : release_.tensors_of(bucket)) parts.push_back(gradients_[member]);
    parts.emplace_back(presence_[bucket]);
    last_ticket_ = communicator_->sum(std::move(parts), 1.0f / static_cast<float>(communicator_->group().size()));
  });
}

Result<SyncStats> SumExchange::finish_step() {
  const Clock& clock = communicator_->group().clock();
  const TimePoint begin = clock.now();
  SYNCOPATE_RETURN_IF_ERROR(communicator_->wait(last_ticket_));
  SyncStats stats = communicator_->take_costs();
  stats.exposed_wait = clock.now() - begin;
  return stats;
}

std::vector<std::size_t> SumExchange::absent_everywhere() const {
  std::vector<std::size_t> absent;
  for (std::size_t bucket = 0; bucket < presence_.size(); ++bucket) {
    for (std::size_t i = 0; i < presence_[bucket].size(); ++i) {
      if (presence_[bucket][i] == 0) absent.push_back(release_.tensors_of(bucket)[i]);
    }
  }
  return absent;
}

Status SumExchange::leave() { return communicator_->wait(communicator_->barrier()); }

float& SumExchange::presence_of(std::size_t tensor) {
  const std::size_t bucket = release_.buckets_of(tensor).front();  // buckets are of whole tensors
  return presence_[bucket][tensor - release_.tensors_of(bucket).front()];
}

}  // namespace syncopate::library
