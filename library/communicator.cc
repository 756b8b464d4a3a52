#include "library/communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "allreduce/strategy/agreement.h"
#include "common/float_loops.h"

namespace syncopate::library {
namespace {

// A megabyte of two ranks is in the cache when it is summed.
constexpr std::size_t kStagingFloats = std::size_t{1} << 18;

// Goes through parts as if they were one.
class PartReader {
 public:
  explicit PartReader(const std::vector<std::span<float>>& parts) : parts_(parts) {}

  // Calls work(values, place) for the next parts of at most `count` floats altogether; returns how many they were.
  template <typename Work>
  std::size_t next(std::size_t count, const Work& work) {
    std::size_t done = 0;
    while (done < count && part_ < parts_.size()) {
      const std::span<float> rest = parts_[part_].subspan(at_);
      const std::span<float> values = rest.first(std::min(rest.size(), count - done));
      work(values, done);
      done += values.size();
      at_ += values.size();
      if (values.size() == rest.size()) {
        ++part_;
        at_ = 0;
      }
    }
    return done;
  }

 private:
  const std::vector<std::span<float>>& parts_;
  std::size_t part_ = 0;
  std::size_t at_ = 0;  // in the part
};

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::connect(std::shared_ptr<Group> group, const std::string& name) {
  SYNCOPATE_ASSIGN_OR_RETURN(ConnectedCollective connected, group->connect_collective(name));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> staging, connected.collective->allocate(kStagingFloats));
  return std::unique_ptr<Communicator>(new Communicator(std::move(group), std::move(connected), staging));
}

Communicator::Communicator(std::shared_ptr<Group> group, ConnectedCollective connected, std::span<float> staging)
    : group_(std::move(group)), connected_(std::move(connected)), staging_(staging) {
  interrupted_by_loss_.emplace(*group_, [this] { connected_.collective->interrupt(); });
  thread_ = std::make_unique<allreduce::CommunicationThread>();
}

Communicator::~Communicator() {
  interrupt();
  thread_.reset();
}

void Communicator::interrupt() {
  // Otherwise the wire is left in order, so that others still get what was sent to them.
  if (thread_->has_unfinished()) connected_.collective->interrupt();
}

template <typename Work>
std::uint64_t Communicator::submit(Work work, std::size_t bytes) {
  return thread_->submit([this, work = std::move(work), bytes] {
    const std::uint64_t ticket = ++begun_;
    {
      const std::lock_guard lock(mutex_);
      if (!failure_.ok()) return;
    }
    const TimePoint begin = group_->clock().now();
    Tracer* const tracer = group_->tracer();
    TraceSpan span(tracer, {.kind = TraceKind::kCollective,
                            .number = tracer != nullptr ? tracer->step() : 0,
                            .bytes = static_cast<std::int64_t>(bytes)});
    const Status status = work();
    span.end();
    const std::lock_guard lock(mutex_);
    worked_ += group_->clock().now() - begin;
    moved_ = connected_.collective->counters();
    if (status.ok()) return;
    failure_ = status;
    failed_at_ = ticket;
    missed_ = connected_.collective->missed();
  });
}

std::uint64_t Communicator::sum(std::vector<std::span<float>> parts, float scale) {
  std::size_t floats = 0;
  for (const std::span<float>& part : parts) floats += part.size();
  return submit([this, parts = std::move(parts), scale] { return sum_now(parts, scale); }, floats * sizeof(float));
}

std::uint64_t Communicator::broadcast(std::span<std::byte> bytes, int root) {
  return submit([this, bytes, root] { return broadcast_now(bytes, root); }, bytes.size());
}

std::uint64_t Communicator::barrier() {
  return submit([this] { return connected_.collective->barrier(group_->deadline()); });
}

std::uint64_t Communicator::run(std::function<Status(allreduce::Collective&)> work, std::size_t bytes) {
  return submit([this, work = std::move(work)] { return work(*connected_.collective); }, bytes);
}

Status Communicator::prove_same(const ParamLayout& layout, std::span<const Range> buckets) {
  return wait(submit([&] {
    const allreduce::GroupAgreement own = group_agreement_of(layout, buckets, *connected_.collective);
    return prove_agreement(*connected_.collective, own, group_->deadline());
  }));
}

Status Communicator::wait(std::uint64_t ticket) {
  thread_->wait_for(ticket);
  const std::lock_guard lock(mutex_);
  return failure_.ok() || failed_at_ > ticket ? Status() : failure_;
}

SyncStats Communicator::take_costs() {
  const std::lock_guard lock(mutex_);
  SyncStats costs;
  costs.communication = std::exchange(worked_, {});
  const TransportCounters sent = moved_ - std::exchange(taken_, moved_);
  costs.bytes_out = sent.payload_bytes_out;
  costs.bytes_in = sent.payload_bytes_in;
  return costs;
}

int Communicator::missed() {
  const std::lock_guard lock(mutex_);
  return missed_;
}

Status Communicator::sum_now(const std::vector<std::span<float>>& parts, float scale) {
  PartReader in(parts), out(parts);
  while (true) {
    const std::size_t count = in.next(staging_.size(), [&](std::span<float> values, std::size_t place) {
      std::ranges::copy(values, staging_.begin() + static_cast<std::ptrdiff_t>(place));
    });
    if (count == 0) return Status();
    SYNCOPATE_RETURN_IF_ERROR(connected_.collective->all_reduce(staging_.first(count), group_->deadline()));
    out.next(count, [&](std::span<float> values, std::size_t place) {
      syncopate::scale(scale, staging_.data() + place, values.data(), values.size());
    });
  }
}

Status Communicator::broadcast_now(std::span<std::byte> bytes, int root) {
  const std::size_t piece = staging_.size_bytes();
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const std::span<std::byte> part = bytes.subspan(at, std::min(piece, bytes.size() - at));
    const std::span<float> floats = staging_.first((part.size() + sizeof(float) - 1) / sizeof(float));
    if (group_->rank() == root) std::memcpy(floats.data(), part.data(), part.size());
    SYNCOPATE_RETURN_IF_ERROR(connected_.collective->broadcast(floats, root, group_->deadline()));
    if (group_->rank() != root) std::memcpy(part.data(), floats.data(), part.size());
  }
  return Status();
}

}  // namespace syncopate::library
