#include "worker/pipeline/stage_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace syncopate::worker {
namespace {

const char* what_of(StageMessage kind) {
  switch (kind) {
    case StageMessage::kActivations:
      return "activations";
    case StageMessage::kGradient:
      return "the gradient of activations";
    case StageMessage::kSharedGradient:
      return "the gradient of a shared tensor";
    case StageMessage::kSharedWeights:
      return "the weights of a shared tensor";
    case StageMessage::kOwnWeights:
      return "weights";
  }
  return "";
}

}  // namespace

StageLinks::StageLinks(Transport& transport, StageLinksOptions options, const Clock& clock)
    : transport_(transport),
      options_(std::move(options)),
      clock_(clock),
      costs_(clock, options_.tracer),
      sent_(static_cast<std::size_t>(transport.size()) * kStageMessages),
      arrived_(sent_.size()),
      kept_(sent_.size()) {}

std::string StageLinks::of_worker(int stage) const {
  const auto at = static_cast<std::size_t>(stage);
  return at < options_.workers.size() ? fmt::format("worker {} (stage {})", options_.workers[at], stage)
                                      : fmt::format("stage {}", stage);
}

Status StageLinks::send(int stage, StageMessage kind, std::span<const float> values) {
  if (status_.ok()) {
    status_ = send_now(stage, kind, values)
                  .in(fmt::format("step {}: sending {} to {}", costs_.step(), what_of(kind), of_worker(stage)));
  }
  return status_;
}

Status StageLinks::receive(int stage, StageMessage kind, std::span<float> values) {
  const auto read = [&](std::span<const std::byte> payload) -> Status {
    if (payload.size() != values.size_bytes()) {
      return Status::data_loss(fmt::format("{} bytes came where {} were due", payload.size(), values.size_bytes()));
    }
    std::ranges::copy(payload, std::as_writable_bytes(values).begin());
    costs_.count_bytes(0, static_cast<std::int64_t>(payload.size()));
    return {};
  };
  return take_next(stage, kind, read);
}

Status StageLinks::discard(int stage, StageMessage kind) {
  return take_next(stage, kind, [](std::span<const std::byte>) { return Status(); });
}

Status StageLinks::take_next(int stage, StageMessage kind, const ReadPayload& read) {
  if (!status_.ok()) return status_;
  status_ = costs_.counted([&] { return take_now(stage, kind, read); },
                           fmt::format("waiting for {} of {}", what_of(kind), of_worker(stage)));
  return status_;
}

Status StageLinks::send_now(int stage, StageMessage kind, std::span<const float> values) {
  SYNCOPATE_ASSIGN_OR_RETURN(Buffer* const buffer, buffer_of(values.size_bytes()));
  std::ranges::copy(std::as_bytes(values), buffer->memory.begin());
  const Header header{.kind = kind, .number = sent_[index(stage, kind)]++};
  costs_.count_bytes(static_cast<std::int64_t>(values.size_bytes()), 0);
  return transport_.send(stage, {reinterpret_cast<const char*>(&header), sizeof(header)},
                         buffer->memory.first(values.size_bytes()), &buffer->pending, deadline());
}

Status StageLinks::take_now(int stage, StageMessage kind, const ReadPayload& read) {
  std::deque<std::vector<std::byte>>& kept = kept_[index(stage, kind)];
  if (!kept.empty()) {
    const std::vector<std::byte> payload = std::move(kept.front());
    kept.pop_front();
    return read(payload);
  }
  const TimePoint until = deadline();
  while (true) {
    SYNCOPATE_ASSIGN_OR_RETURN(const Message message, transport_.receive(until));
    SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<std::size_t> at, place_of(message));
    if (!at) continue;
    if (*at == index(stage, kind)) return read(message.payload());
    kept_[*at].emplace_back(message.payload().begin(), message.payload().end());
  }
}

Result<std::optional<std::size_t>> StageLinks::place_of(const Message& message) {
  Header header;
  const bool has_header = message.header().size() == sizeof(header);
  if (has_header) std::memcpy(&header, message.header().data(), sizeof(header));
  const bool is_known = has_header && static_cast<std::size_t>(header.kind) < kStageMessages;
  const std::size_t at = is_known ? index(message.from(), header.kind) : 0;
  if (!is_known || header.number < arrived_[at]) {
    ++dropped_;
    return std::optional<std::size_t>();
  }
  if (header.number > arrived_[at]) {
    return Status::data_loss(fmt::format("message {} of {} of {} came where number {} was due", header.number,
                                         what_of(header.kind), of_worker(message.from()), arrived_[at]));
  }
  ++arrived_[at];
  return std::optional(at);
}

void StageLinks::progress() {
  if (status_.ok()) transport_.progress();
}

Status StageLinks::flush() {
  for (Buffer& buffer : buffers_) {
    if (!status_.ok()) break;
    if (buffer.pending.none()) continue;
    status_ = costs_.counted([&] { return transport_.wait(buffer.pending, deadline()); },
                             "waiting for others to take what was sent");
  }
  return status_;
}

Result<StageLinks::Buffer*> StageLinks::buffer_of(std::size_t bytes) {
  transport_.progress();
  for (Buffer& buffer : buffers_) {
    if (buffer.memory.size() >= bytes && buffer.pending.none()) return &buffer;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, transport_.allocate(bytes));
  buffers_.push_back({.memory = memory});
  return &buffers_.back();
}

}  // namespace syncopate::worker
