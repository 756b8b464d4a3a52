#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/transport/socket_frame.h"
#include "common/transport/socket_stream.h"

namespace syncopate {
namespace {

constexpr std::size_t kLargestSealed = kMostInRecord + SocketCipher::kTagBytes;
constexpr std::size_t kLargestRecord = sizeof(RecordHead) + kLargestSealed;
// One call of the kernel brings several records.
constexpr std::size_t kReadBytes = 4 * kLargestRecord;

std::span<std::byte> bytes_of(const iovec& place) { return {static_cast<std::byte*>(place.iov_base), place.iov_len}; }

class SealedStream final : public SocketStream {
 public:
  SealedStream(FileDescriptor socket, const SocketCipher& out, const SocketCipher& in)
      : socket_(std::move(socket)),
        out_(out),
        in_(in),
        gathered_(kMostInRecord),
        record_(kLargestRecord),
        received_(kReadBytes),
        opened_(kMostInRecord) {}

  int descriptor() const override { return socket_.get(); }
  bool holds_bytes() const override { return record_begin_ < record_end_; }

  std::optional<std::size_t> write(std::span<const iovec> parts) override {
    std::size_t taken = 0;
    std::size_t skip = 0;  // of the first part
    while (true) {
      if (!send_record()) return std::nullopt;
      if (holds_bytes()) return taken;
      while (!parts.empty() && skip == parts.front().iov_len) {
        parts = parts.subspan(1);
        skip = 0;
      }
      if (parts.empty()) return taken;
      const std::span<const std::byte> plain = next_plain(parts, skip);
      seal(plain);
      taken += plain.size();
      for (std::size_t left = plain.size(); left > 0;) {
        const std::size_t of_first = std::min(left, parts.front().iov_len - skip);
        skip += of_first;
        left -= of_first;
        if (left == 0) break;
        parts = parts.subspan(1);
        skip = 0;
      }
    }
  }

  std::optional<std::size_t> read(std::span<const iovec> places) override {
    std::size_t given = 0;
    std::size_t skip = 0;  // of the first place
    const auto room = [&] {
      while (!places.empty() && skip == places.front().iov_len) {
        places = places.subspan(1);
        skip = 0;
      }
      return places.empty() ? std::span<std::byte>() : bytes_of(places.front()).subspan(skip);
    };
    bool fresh = false;  // whether the kernel has been asked
    while (!room().empty()) {
      if (opened_begin_ == opened_end_) {
        if (is_broken_) return ended(given);
        const std::optional<std::span<const std::byte>> sealed = next_sealed();
        if (!sealed) {
          is_broken_ = true;
          continue;
        }
        if (sealed->empty()) {
          if (fresh || given > 0) return given;
          fresh = true;
          if (!receive()) return std::nullopt;
          continue;
        }
        const std::size_t plain = sealed->size() - SocketCipher::kTagBytes;
        const bool fits = room().size() >= plain;
        if (!in_.open(*sealed, fits ? room().data() : opened_.data())) {
          is_broken_ = true;
          continue;
        }
        received_begin_ += sizeof(RecordHead) + sealed->size();
        if (fits) {
          skip += plain;
          given += plain;
          continue;
        }
        opened_begin_ = 0;
        opened_end_ = plain;
      }
      const std::size_t bytes = std::min(opened_end_ - opened_begin_, room().size());
      std::memcpy(room().data(), &opened_[opened_begin_], bytes);
      opened_begin_ += bytes;
      skip += bytes;
      given += bytes;
    }
    return given;
  }

  bool has_received() const override {
    if (opened_begin_ < opened_end_ || is_broken_) return true;
    const std::optional<std::span<const std::byte>> sealed = next_sealed();
    return !sealed || !sealed->empty();
  }

 private:
  // The next record's content: of the first part alone where that fills it, else gathered from several.
  std::span<const std::byte> next_plain(std::span<const iovec> parts, std::size_t skip) {
    const std::span<const std::byte> first = bytes_of(parts.front()).subspan(skip);
    if (first.size() >= kMostInRecord || parts.size() == 1) return first.first(std::min(first.size(), kMostInRecord));
    std::size_t bytes = 0;
    for (const iovec& part : parts) {
      const std::span<const std::byte> source = bytes_of(part).subspan(skip);
      const std::size_t of_part = std::min(source.size(), kMostInRecord - bytes);
      std::memcpy(&gathered_[bytes], source.data(), of_part);
      bytes += of_part;
      skip = 0;
      if (bytes == kMostInRecord) break;
    }
    return std::span(gathered_).first(bytes);
  }

  void seal(std::span<const std::byte> plain) {
    const RecordHead head{static_cast<std::uint32_t>(plain.size() + SocketCipher::kTagBytes)};
    std::memcpy(record_.data(), &head, sizeof(head));
    out_.seal(plain, record_.data() + sizeof(head));
    record_begin_ = 0;
    record_end_ = sizeof(head) + head.sealed_bytes;
  }

  // False if the connection takes no more.
  bool send_record() {
    while (holds_bytes()) {
      const ssize_t bytes =
          ::send(socket_.get(), &record_[record_begin_], record_end_ - record_begin_, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (bytes < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
      record_begin_ += static_cast<std::size_t>(bytes);
    }
    return true;
  }

  // False if no more will come.
  bool receive() {
    std::memmove(received_.data(), received_.data() + received_begin_, received_end_ - received_begin_);
    received_end_ -= received_begin_;
    received_begin_ = 0;
    const ssize_t bytes =
        recv(socket_.get(), received_.data() + received_end_, received_.size() - received_end_, MSG_DONTWAIT);
    if (bytes < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    received_end_ += static_cast<std::size_t>(bytes);
    return bytes > 0;
  }

  // What is sealed in the next record; empty if it is not there yet, nothing if it is none.
  std::optional<std::span<const std::byte>> next_sealed() const {
    const std::size_t there = received_end_ - received_begin_;
    RecordHead head;
    if (there < sizeof(head)) return std::span<const std::byte>();
    std::memcpy(&head, &received_[received_begin_], sizeof(head));
    if (head.sealed_bytes <= SocketCipher::kTagBytes || head.sealed_bytes > kLargestSealed) return std::nullopt;
    if (there < sizeof(head) + head.sealed_bytes) return std::span<const std::byte>();
    return std::span(received_).subspan(received_begin_ + sizeof(head), head.sealed_bytes);
  }

  // What was opened before is given out first; all further calls come to the end.
  static std::optional<std::size_t> ended(std::size_t given) { return given > 0 ? std::optional(given) : std::nullopt; }

  const FileDescriptor socket_;
  SocketCipher out_;
  SocketCipher in_;
  std::vector<std::byte> gathered_;
  std::vector<std::byte> record_;  // sealed; [record_begin_, record_end_) is still to be sent
  std::size_t record_begin_ = 0;
  std::size_t record_end_ = 0;
  std::vector<std::byte> received_;  // [received_begin_, received_end_) is still to be opened
  std::size_t received_begin_ = 0;
  std::size_t received_end_ = 0;
  std::vector<std::byte> opened_;  // [opened_begin_, opened_end_) is still to be given out
  std::size_t opened_begin_ = 0;
  std::size_t opened_end_ = 0;
  bool is_broken_ = false;  // what came is not the next record: nothing that comes is looked at any more
};

}  // namespace

std::unique_ptr<SocketStream> make_sealed_stream(FileDescriptor socket, const SocketCipher& out,
                                                 const SocketCipher& in) {
  return std::make_unique<SealedStream>(std::move(socket), out, in);
}

}  // namespace syncopate
