#include "allreduce/strategy/on_demand_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "allreduce/collective/shared_words.h"
#include "common/float_loops.h"
#include "common/os/flush_denormals.h"

namespace syncopate::allreduce {
namespace {

std::string_view bytes_of(const auto& header) { return {reinterpret_cast<const char*>(&header), sizeof(header)}; }

std::int64_t bytes(Range range) { return static_cast<std::int64_t>(range.size() * sizeof(float)); }

}  // namespace

Result<PartsOfRanks> share_parts(Collective& collective, std::span<const Range> own, TimePoint deadline) {
  std::vector<std::uint64_t> words;
  for (const Range& part : own) words.insert(words.end(), {part.begin, part.end});
  SYNCOPATE_ASSIGN_OR_RETURN(const auto all, share_words(collective, words, deadline));
  PartsOfRanks parts(own.size());
  for (std::size_t bucket = 0; bucket < own.size(); ++bucket) {
    for (const std::vector<std::uint64_t>& of_rank : all) {
      parts[bucket].push_back({of_rank[2 * bucket], of_rank[2 * bucket + 1]});
    }
  }
  return parts;
}

OnDemandExchange::OnDemandExchange(Endpoints endpoints, const Options& options, const Clock& clock)
    : endpoints_(endpoints), options_(options), clock_(clock), monitor_(options.threads->make_monitor()) {}

OnDemandExchange::~OnDemandExchange() {
  if (thread_) endpoints_.answers->interrupt();
}

Status OnDemandExchange::start(std::span<float> weights, PartsOfRanks parts, int passes, std::int64_t version,
                               Update update) {
  weights_ = weights;
  parts_ = std::move(parts);
  passes_ = passes;
  update_ = std::move(update);
  version_ = version;
  given_.resize(parts_.size());
  std::size_t largest = 0;
  for (const std::vector<Range>& bucket : parts_) {
    std::size_t whole = 0;
    for (const Range part : bucket) whole += part.size();
    largest = std::max(largest, whole);
    const Range own = bucket[static_cast<std::size_t>(rank())];
    owned_.push_back({.range = own,
                      .sum = AlignedBuffer(own.size()),
                      .passes = std::vector<int>(bucket.size()),
                      .version = version,
                      .waiting = {}});
  }
  SYNCOPATE_ASSIGN_OR_RETURN(outgoing_, endpoints_.asks->allocate(largest * sizeof(float)));
  thread_ = options_.threads->start("on-demand answers", [this] { run(); });
  return {};
}

Status OnDemandExchange::gather(std::size_t bucket, TimePoint deadline) {
  Header question{.kind = Kind::kAsk, .bucket = static_cast<std::uint32_t>(bucket), .number = ++asked_};
  {
    const Lock lock(*monitor_);
    question.version = version_;
  }
  std::vector<bool> awaited(static_cast<std::size_t>(ranks()));
  // Each rank begins with another, so that not all ask the same one first.
  for (int i = 1; i < ranks(); ++i) {
    const int owner = (rank() + i) % ranks();
    const auto at = static_cast<std::size_t>(owner);
    awaited[at] = parts_[bucket][at].size() > 0;
    if (!awaited[at]) continue;
    SYNCOPATE_RETURN_IF_ERROR(endpoints_.asks->send(ranks() + owner, bytes_of(question), {}, nullptr, deadline)
                                  .in(fmt::format("asking rank {} for its weights", owner)));
  }
  for (auto first = std::ranges::find(awaited, true); first != awaited.end();
       first = std::ranges::find(awaited, true)) {
    Result<Message> message = endpoints_.asks->receive(deadline);
    if (!message.ok()) {
      return message.status().in(fmt::format("waiting for the weights of rank {}", first - awaited.begin()));
    }
    const std::optional<Header> header = header_of(*message);
    const auto owner = static_cast<std::size_t>(message->from() - ranks());
    if (!header || header->kind != Kind::kPart || header->number != question.number || owner >= awaited.size() ||
        !awaited[owner]) {
      const Lock lock(*monitor_);
      ++dropped_;
      continue;
    }
    const Range part = parts_[bucket][owner];
    if (message->payload().size() != part.size() * sizeof(float)) {
      return Status::data_loss(fmt::format("rank {} sent {} bytes of weights where {} were due", owner,
                                           message->payload().size(), bytes(part)));
    }
    std::ranges::copy(message->floats(), slice(weights_, part).begin());
    counters_.payload_bytes_in += bytes(part);
    awaited[owner] = false;
  }
  return {};
}

Status OnDemandExchange::scatter(std::size_t bucket, std::span<const float> gradients, TimePoint deadline) {
  Header header{.kind = Kind::kGradient, .bucket = static_cast<std::uint32_t>(bucket), .number = given_[bucket]++};
  {
    const Lock lock(*monitor_);
    header.version = version_;
    add_gradient(bucket, rank(), slice(gradients, owned_[bucket].range));
  }
  std::span<std::byte> left = outgoing_;
  for (int i = 1; i < ranks(); ++i) {
    const int owner = (rank() + i) % ranks();
    const Range part = parts_[bucket][static_cast<std::size_t>(owner)];
    if (part.size() == 0) continue;
    const auto values = std::as_bytes(slice(gradients, part));
    const std::span<std::byte> copy = left.first(values.size());
    left = left.subspan(values.size());
    std::ranges::copy(values, copy.begin());
    SYNCOPATE_RETURN_IF_ERROR(
        endpoints_.asks->send(ranks() + owner, bytes_of(header), copy, &outgoing_pending_, deadline)
            .in(fmt::format("giving rank {} its part of a gradient", owner)));
    counters_.payload_bytes_out += bytes(part);
  }
  // A wire without threads sends inside calls alone.
  return endpoints_.asks->wait(outgoing_pending_, deadline).in("sending gradients");
}

Status OnDemandExchange::end_step(TimePoint deadline) {
  std::ranges::fill(given_, 0);
  Header header{.kind = Kind::kEndStep};
  {
    const Lock lock(*monitor_);
    header.version = version_;
  }
  // Something is in it, so that there is something to wait for until it has left.
  SYNCOPATE_RETURN_IF_ERROR(endpoints_.asks->send(ranks() + rank(), bytes_of(header), outgoing_.first(sizeof(float)),
                                                  &outgoing_pending_, deadline));
  return endpoints_.asks->wait(outgoing_pending_, deadline).in("ending the step");
}

Status OnDemandExchange::wait_for_update(TimePoint deadline) {
  Lock lock(*monitor_);
  while (true) {
    failure_.rethrow();
    SYNCOPATE_RETURN_IF_ERROR(status_);
    if (std::ranges::all_of(owned_, [&](const Owned& owned) { return owned.version > version_; })) break;
    if (clock_.now() >= deadline) return Status::deadline_exceeded("waiting for " + missing());
    monitor_->wait_until(deadline);
  }
  ++version_;
  passes_are_over_ = false;
  return {};
}

TransportCounters OnDemandExchange::take_answered() {
  const Lock lock(*monitor_);
  return std::exchange(answered_, {});
}

std::int64_t OnDemandExchange::dropped() const {
  const Lock lock(*monitor_);
  return dropped_;
}

std::optional<OnDemandExchange::Header> OnDemandExchange::header_of(const Message& message) const {
  Header header;
  if (message.header().size() != sizeof(header)) return std::nullopt;
  std::memcpy(&header, message.header().data(), sizeof(header));
  return header.bucket < parts_.size() ? std::optional(header) : std::nullopt;
}

void OnDemandExchange::run() {
  const FlushDenormals flush;
  Status status;
  failure_.carry([&] { status = answer(); });
  const Lock lock(*monitor_);
  status_ = std::move(status);
  monitor_->notify_all();
}

// It ends by a failure, of which an interrupt is one.
Status OnDemandExchange::answer() {
  while (true) {
    const Result<Message> message = endpoints_.answers->receive(clock_.now() + options_.timeout);
    if (!message.ok() && message.status().code() == Code::kDeadlineExceeded) continue;  // nobody needs anything
    if (!message.ok()) return message.status().in("answering others");
    const Lock lock(*monitor_);
    SYNCOPATE_RETURN_IF_ERROR(handle(*message));
    monitor_->notify_all();
  }
}

Status OnDemandExchange::handle(const Message& message) {
  const std::optional<Header> header = header_of(message);
  const int from = message.from();
  if (!header || from < 0 || from >= ranks()) {
    ++dropped_;
    return {};
  }
  Owned& owned = owned_[header->bucket];
  switch (header->kind) {
    case Kind::kAsk:
      if (header->version > owned.version) {
        owned.waiting.push_back({from, *header});
        return {};
      }
      if (header->version == owned.version) return reply({from, *header});
      break;  // it came again, and has been answered
    case Kind::kGradient: {
      const int passes = owned.passes[static_cast<std::size_t>(from)];
      if (header->version < owned.version || (header->version == owned.version && header->number < passes)) break;
      if (header->version > owned.version || header->number > passes) {
        return Status::data_loss(
            fmt::format("a gradient of step {}, pass {} of rank {} came where step {}, pass {} was due",
                        header->version, header->number, from, owned.version, passes));
      }
      if (message.payload().size() != owned.range.size() * sizeof(float)) {
        return Status::data_loss(fmt::format("rank {} sent {} bytes of a gradient where {} were due", from,
                                             message.payload().size(), bytes(owned.range)));
      }
      add_gradient(header->bucket, from, message.floats());
      answered_.payload_bytes_in += bytes(owned.range);
      return update_if_due(header->bucket);
    }
    case Kind::kEndStep:
      if (from != rank() || header->version != version_) break;
      passes_are_over_ = true;
      for (std::size_t bucket = 0; bucket < owned_.size(); ++bucket) {
        SYNCOPATE_RETURN_IF_ERROR(update_if_due(bucket));
      }
      return {};
    case Kind::kPart:
      break;
  }
  ++dropped_;
  return {};
}

Status OnDemandExchange::reply(const Ask& ask) {
  const std::span<const float> part = slice(weights_, owned_[ask.header.bucket].range);
  SYNCOPATE_ASSIGN_OR_RETURN(Buffer* const buffer, buffer_of(part.size_bytes()));
  const std::span<std::byte> copy = buffer->memory.first(part.size_bytes());
  std::ranges::copy(std::as_bytes(part), copy.begin());
  Header header = ask.header;
  header.kind = Kind::kPart;
  answered_.payload_bytes_out += static_cast<std::int64_t>(part.size_bytes());
  return endpoints_.answers->send(ask.from, bytes_of(header), copy, &buffer->pending, clock_.now() + options_.timeout)
      .in(fmt::format("answering rank {}", ask.from));
}

void OnDemandExchange::add_gradient(std::size_t bucket, int from, std::span<const float> part) {
  Owned& owned = owned_[bucket];
  const bool is_first = std::ranges::all_of(owned.passes, [](int passes) { return passes == 0; });
  ++owned.passes[static_cast<std::size_t>(from)];
  if (is_first) {
    std::ranges::copy(part, owned.sum.data());
    return;
  }
  add(part.data(), owned.sum.data(), part.size());
  clock_.processed(Processing::kSum, part.size_bytes());
}

bool OnDemandExchange::is_complete(const Owned& owned) const {
  return owned.range.size() == 0 || std::ranges::all_of(owned.passes, [this](int passes) { return passes == passes_; });
}

Status OnDemandExchange::update_if_due(std::size_t bucket) {
  Owned& owned = owned_[bucket];
  if (!passes_are_over_ || !is_complete(owned)) return {};
  update_(bucket, owned.sum.span());
  std::ranges::fill(owned.passes, 0);
  ++owned.version;
  for (const Ask& ask : std::exchange(owned.waiting, {})) SYNCOPATE_RETURN_IF_ERROR(reply(ask));
  return {};
}

std::string OnDemandExchange::missing() const {
  for (std::size_t bucket = 0; bucket < owned_.size(); ++bucket) {
    const std::vector<int>& passes = owned_[bucket].passes;
    const auto late = std::ranges::find_if(passes, [this](int each) { return each < passes_; });
    if (owned_[bucket].version > version_ || late == passes.end()) continue;
    return fmt::format("rank {}: of its gradients of bucket {} {} of {} have come", late - passes.begin(), bucket,
                       *late, passes_);
  }
  return "the update";
}

Result<OnDemandExchange::Buffer*> OnDemandExchange::buffer_of(std::size_t bytes) {
  endpoints_.answers->progress();
  for (Buffer& buffer : buffers_) {
    if (buffer.memory.size() >= bytes && buffer.pending.none()) return &buffer;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, endpoints_.answers->allocate(bytes));
  buffers_.push_back({.memory = memory, .pending = {}});
  return &buffers_.back();
}

}  // namespace syncopate::allreduce
