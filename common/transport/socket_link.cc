#include "common/transport/socket_link.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace syncopate {
namespace {

// The limits of one call of the kernel, each way: while it copies, nothing is sent the other way.
constexpr std::size_t kMostAtOnce = 512 * 1024;
constexpr std::size_t kMostParts = 16;

class BufferLease final : public Message::Lease {
 public:
  explicit BufferLease(BufferPool::Buffer buffer) : buffer_(std::move(buffer)) {}

 private:
  BufferPool::Buffer buffer_;
};

iovec part_of(std::span<const std::byte> bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

bool is_goodbye(const FrameHead& head) {
  return head.kind == FrameHead::Kind::kGoodbye && head.header_bytes == 0 && head.payload_bytes == 0;
}

bool is_message(const FrameHead& head, std::uint64_t largest) {
  return head.kind == FrameHead::Kind::kMessage && head.header_bytes <= kMaxWireHeaderBytes &&
         head.payload_bytes <= largest;
}

// Cuts the list where it passes kMostAtOnce.
std::span<const iovec> limited(std::span<iovec> parts) {
  std::size_t left = kMostAtOnce;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].iov_len = std::min(parts[i].iov_len, left);
    left -= parts[i].iov_len;
    if (left == 0) return parts.first(i + 1);
  }
  return parts;
}

}  // namespace

std::size_t SocketLink::Outgoing::parts(iovec* to) const {
  std::size_t count = 0;
  if (taken < head_bytes) to[count++] = part_of(std::span(head).first(head_bytes).subspan(taken));
  const std::span<const std::byte> rest = payload.subspan(std::max(taken, head_bytes) - head_bytes);
  if (!rest.empty()) to[count++] = part_of(rest);
  return count;
}

SocketLink::SocketLink(int peer, std::unique_ptr<SocketStream> stream, BufferPool& pool, std::uint64_t largest)
    : peer_(peer), stream_(std::move(stream)), pool_(pool), largest_(largest) {}

SocketLink::~SocketLink() { stop_sending(); }

SocketLink::Outgoing::Outgoing(const FrameHead& frame, std::string_view header, std::span<const std::byte> body)
    : head_bytes(sizeof(frame) + header.size()), payload(body) {
  std::memcpy(head.data(), &frame, sizeof(frame));
  header.copy(reinterpret_cast<char*>(head.data() + sizeof(frame)), header.size());
}

void SocketLink::send(std::string_view header, std::span<const std::byte> payload,
                      const PendingSends::Counter* pending) {
  assert(header.size() <= kMaxWireHeaderBytes);
  send({{.header_bytes = static_cast<std::uint32_t>(header.size()), .payload_bytes = payload.size()}, header, payload},
       pending);
}

void SocketLink::say_goodbye() {
  if (!deaf_) send({{.kind = FrameHead::Kind::kGoodbye}, {}, {}}, nullptr);
}

void SocketLink::send(Outgoing message, const PendingSends::Counter* pending) {
  assert(!deaf_);
  if (queue_.empty()) {
    std::array<iovec, 2> parts;
    const std::optional<std::size_t> taken =
        stream_->write(limited(std::span(parts).first(message.parts(parts.data()))));
    if (!taken) return stop_sending();
    message.taken = *taken;
    if (message.taken == message.bytes()) return;
  }
  if (pending != nullptr && !message.payload.empty()) {
    message.pending = *pending;
    message.pending->fetch_add(1, std::memory_order_relaxed);
  } else if (!message.payload.empty()) {
    message.copy = pool_.take(message.payload.size());
    std::ranges::copy(message.payload, message.copy.bytes().begin());
    message.payload = message.copy.bytes();
  }
  queue_.push_back(std::move(message));
}

bool SocketLink::flush() {
  if (!has_more_to_send()) return false;
  std::array<iovec, kMostParts> parts;
  std::size_t count = 0;
  for (auto message = queue_.begin(); message != queue_.end() && count + 2 <= kMostParts; ++message) {
    count += message->parts(&parts[count]);
  }
  const std::optional<std::size_t> taken = stream_->write(limited(std::span(parts).first(count)));
  if (!taken) stop_sending();
  if (!taken || *taken == 0) return false;
  for (std::size_t left = *taken; left > 0;) {
    Outgoing& first = queue_.front();
    const std::size_t of_first = std::min(left, first.bytes() - first.taken);
    first.taken += of_first;
    left -= of_first;
    if (first.taken < first.bytes()) break;
    if (first.pending) first.pending->fetch_sub(1, std::memory_order_release);
    queue_.pop_front();
  }
  return true;
}

void SocketLink::stop_sending() {
  deaf_ = true;
  for (Outgoing& message : queue_) {
    if (message.pending) message.pending->fetch_sub(1, std::memory_order_release);
  }
  queue_.clear();
}

std::size_t SocketLink::unconfirmed() const {
  int bytes = 0;
  return ioctl(stream_->descriptor(), SIOCOUTQ, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

bool SocketLink::receive(std::deque<Message>& inbox) {
  bool moved = false;
  do {
    if (ended_) return moved;
    std::array<iovec, 2> places;
    std::size_t count = 0;
    if (incoming_.under_way()) places[count++] = part_of(incoming_.payload.bytes().subspan(incoming_.filled));
    places[count++] = part_of(std::span(ahead_).subspan(ahead_end_));
    const std::optional<std::size_t> bytes = stream_->read(limited(std::span(places).first(count)));
    if (!bytes) {
      ended_ = true;
      stop_sending();
      return true;
    }
    if (*bytes == 0) return moved;
    const std::size_t of_payload = incoming_.under_way() ? std::min(*bytes, incoming_.missing()) : 0;
    incoming_.filled += of_payload;
    ahead_end_ += *bytes - of_payload;
    parse(inbox);
    moved = true;
  } while (stream_->has_received());
  return moved;
}

void SocketLink::parse(std::deque<Message>& inbox) {
  while (true) {
    if (!incoming_.under_way() && !begin_message(inbox)) break;
    if (!incoming_.under_way()) continue;  // a message without a payload
    const std::size_t bytes = std::min(incoming_.missing(), ahead_end_ - ahead_begin_);
    std::memcpy(incoming_.payload.bytes().data() + incoming_.filled, ahead_.data() + ahead_begin_, bytes);
    incoming_.filled += bytes;
    ahead_begin_ += bytes;
    if (incoming_.missing() > 0) break;
    end_message(inbox);
  }
  // A frame's head that is not complete moves to the front, where there is room for the rest.
  std::memmove(ahead_.data(), ahead_.data() + ahead_begin_, ahead_end_ - ahead_begin_);
  ahead_end_ -= ahead_begin_;
  ahead_begin_ = 0;
}

// False if the head of the next frame is not there yet.
bool SocketLink::begin_message(std::deque<Message>& inbox) {
  const std::size_t there = ahead_end_ - ahead_begin_;
  FrameHead head;
  if (there < sizeof(head)) return false;
  std::memcpy(&head, ahead_.data() + ahead_begin_, sizeof(head));
  goodbye_ = is_goodbye(head);
  corrupt_ = !goodbye_ && !is_message(head, largest_);
  if (goodbye_ || corrupt_) {
    ended_ = true;
    stop_sending();
    return false;
  }
  if (there < sizeof(head) + head.header_bytes) return false;
  incoming_.header.assign(reinterpret_cast<const char*>(ahead_.data() + ahead_begin_ + sizeof(head)),
                          head.header_bytes);
  ahead_begin_ += sizeof(head) + head.header_bytes;
  if (head.payload_bytes == 0) {
    inbox.emplace_back(peer_, std::move(incoming_.header), std::span<const std::byte>(), nullptr);
  } else {
    incoming_.payload = pool_.take(head.payload_bytes);
    incoming_.filled = 0;
  }
  return true;
}

void SocketLink::end_message(std::deque<Message>& inbox) {
  const std::span<const std::byte> payload = incoming_.payload.bytes();
  inbox.emplace_back(peer_, std::move(incoming_.header), payload,
                     std::make_unique<BufferLease>(std::exchange(incoming_.payload, BufferPool::Buffer())));
}

}  // namespace syncopate
