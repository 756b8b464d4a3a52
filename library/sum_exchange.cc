#include "library/sum_exchange.h"

#include <algorithm>
#include <utility>

#include "common/float_loops.h"
#include "common/training_state.h"

namespace syncopate::library {
namespace {

// What random-k and stochastic rounding draw from, the same on all ranks.
constexpr std::uint64_t kSeed = 1;

}  // namespace

Result<std::unique_ptr<SumExchange>> SumExchange::connect(std::shared_ptr<Group> group, const std::string& name,
                                                          const ParamLayout& layout, const SumOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> communicator, Communicator::connect(std::move(group), name));
  std::vector<Range> buckets = buckets_in_backward_order(layout, options.bucket_bytes);
  SYNCOPATE_RETURN_IF_ERROR(communicator->prove_same(layout, buckets));
  std::unique_ptr<SumExchange> exchange(new SumExchange(std::move(communicator), layout, std::move(buckets), options));
  if (options.codec.kind != CodecKind::kNone) SYNCOPATE_RETURN_IF_ERROR(exchange->compress());
  return exchange;
}

SumExchange::SumExchange(std::unique_ptr<Communicator> communicator, const ParamLayout& layout,
                         std::vector<Range> buckets, const SumOptions& options)
    : options_(options),
      layout_(layout),
      buckets_(std::move(buckets)),
      release_(layout_, buckets_),
      gradients_(layout.tensors().size()),
      alike_(static_cast<std::size_t>(communicator->group().size())),
      communicator_(std::move(communicator)) {
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    presence_.emplace_back(release_.tensors_of(bucket).size());
  }
}

Status SumExchange::compress() {
  allreduce::Collective& collective = communicator_->collective();
  const Group& group = communicator_->group();
  SYNCOPATE_ASSIGN_OR_RETURN(arena_, collective.allocate(layout_.size()));
  SYNCOPATE_ASSIGN_OR_RETURN(
      compressed_, allreduce::make_compressed_reduction(options_.codec, layout_, kSeed, collective, group.clock()));
  const auto rank = static_cast<std::size_t>(group.rank());
  history_ = allreduce::ReductionHistory(compressed_->memories(),
                                         group.members().empty() ? group.rank() : group.members()[rank]);
  return Status();
}

void SumExchange::begin_step(double /*learning_rate*/) {
  release_.begin();
  in_step_ = true;
  codec_ = {};
  std::ranges::fill(alike_, 0.0f);
  alike_[static_cast<std::size_t>(communicator_->group().rank())] = static_cast<float>(said_);
  if (!options_.elastic || history_.empty()) return;
  last_ticket_ = communicator_->run([this](allreduce::Collective&) {
    history_.keep();
    return Status();
  });
}

void SumExchange::gradient(std::size_t tensor, std::span<float> values, bool is_absent) {
  gradients_[tensor] = values;
  presence_of(tensor) = is_absent ? 0.0f : 1.0f;
  release_.ready(tensor, [this](std::size_t bucket) { sum(bucket); });
}

void SumExchange::sum(std::size_t bucket) {
  std::vector<std::span<float>> parts;
  if (compressed_ == nullptr) {
    for (const std::size_t member : release_.tensors_of(bucket)) parts.push_back(gradients_[member]);
    parts.emplace_back(presence_[bucket]);
    if (bucket == 0) parts.emplace_back(alike_);
    last_ticket_ = communicator_->sum(std::move(parts), factor());
    return;
  }
  last_ticket_ =
      communicator_->run([this, bucket, step = steps_](allreduce::Collective&) { return sum_compressed(bucket, step); },
                         buckets_[bucket].size() * sizeof(float));
  if (bucket + 1 < buckets_.size()) return;
  // A codec would alter these.
  for (std::vector<float>& presence : presence_) parts.emplace_back(presence);
  parts.emplace_back(alike_);
  last_ticket_ = communicator_->sum(std::move(parts), factor());
}

Status SumExchange::sum_compressed(std::size_t bucket, std::int64_t step) {
  const std::vector<std::size_t>& tensors = release_.tensors_of(bucket);
  for (const std::size_t tensor : tensors) {
    std::ranges::copy(gradients_[tensor], slice(arena_, layout_.tensors()[tensor].range).begin());
  }
  const Range range = buckets_[bucket];
  SYNCOPATE_ASSIGN_OR_RETURN(const Duration spent, compressed_->reduce(range, slice(arena_, range), {.number = step},
                                                                       communicator_->group().deadline()));
  codec_ += spent;
  for (const std::size_t tensor : tensors) {
    const std::span<float> values = gradients_[tensor];
    scale(factor(), slice(arena_, layout_.tensors()[tensor].range).data(), values.data(), values.size());
  }
  return Status();
}

Result<SyncStats> SumExchange::finish_step() {
  const Clock& clock = communicator_->group().clock();
  const TimePoint begin = clock.now();
  SYNCOPATE_RETURN_IF_ERROR(communicator_->wait(last_ticket_));
  SyncStats stats = communicator_->take_costs();
  stats.exposed_wait = clock.now() - begin;
  stats.codec = codec_;
  ++steps_;
  in_step_ = false;
  return stats;
}

int SumExchange::differing() const {
  const float own = alike_[static_cast<std::size_t>(communicator_->group().rank())];
  if (has_joined(own)) return -1;
  const auto other = std::ranges::find_if(alike_, [this, own](float said) { return said != own && !has_joined(said); });
  return other == alike_.end() ? -1 : static_cast<int>(other - alike_.begin());
}

std::vector<int> SumExchange::joined() const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < alike_.size(); ++rank) {
    if (has_joined(alike_[rank])) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

float SumExchange::factor() const {
  return options_.average ? 1.0f / static_cast<float>(communicator_->group().size()) : 1.0f;
}

bool SumExchange::has_joined(float said) const { return said > 1.5f * static_cast<float>(kMostSaid) * factor(); }

std::vector<std::size_t> SumExchange::absent_everywhere() const {
  std::vector<std::size_t> absent;
  for (std::size_t bucket = 0; bucket < presence_.size(); ++bucket) {
    for (std::size_t i = 0; i < presence_[bucket].size(); ++i) {
      if (presence_[bucket][i] == 0) absent.push_back(release_.tensors_of(bucket)[i]);
    }
  }
  return absent;
}

Status SumExchange::continue_from(SumExchange& other, std::int64_t steps, int giver) {
  other.communicator_->interrupt();
  (void)other.communicator_->wait(other.last_ticket_);
  const bool lacks_last = steps > other.steps_;
  steps_ = steps;
  if (compressed_ == nullptr) return Status();
  TrainingState state;
  other.history_.save(state, other.in_step_);
  history_.restore(state);
  if (lacks_last) history_.count_failed_step();
  for (const allreduce::ReductionMemory& memory : compressed_->memories()) {
    if (memory.alike) last_ticket_ = communicator_->broadcast(std::as_writable_bytes(memory.values), giver);
  }
  return communicator_->wait(last_ticket_);
}

Status SumExchange::leave() { return communicator_->wait(communicator_->barrier()); }

float& SumExchange::presence_of(std::size_t tensor) {
  const std::size_t bucket = release_.buckets_of(tensor).front();  // buckets are of whole tensors
  return presence_[bucket][tensor - release_.tensors_of(bucket).front()];
}

}  // namespace syncopate::library
