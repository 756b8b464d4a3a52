#include "worker/data/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace syncopate::worker {
namespace {

// Windows as zlib counts them: its largest one, with a gzip header or without any.
constexpr int kGzip = 15 + 16, kDeflated = -15;

class Inflater {
 public:
  explicit Inflater(int window) { ready_ = ::inflateInit2(&stream_, window) == Z_OK; }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ready_) ::inflateEnd(&stream_);
  }

  bool ready() const { return ready_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

// Returns whether another gzip stream begins where this one has ended.
bool goes_on(const z_stream& stream) {
  return stream.avail_in >= 2 && stream.next_in[0] == 0x1f && stream.next_in[1] == 0x8b;
}

Result<std::vector<std::uint8_t>> inflated(std::span<const std::uint8_t> compressed, std::size_t limit,
                                           int window) try {
  const char* const kind = window == kGzip ? "gzip" : "deflated";
  if (compressed.size() > std::numeric_limits<uInt>::max()) {
    return Status::data_loss(fmt::format("{} bytes of gzip, at most 4 GiB are read", compressed.size()));
  }
  Inflater inflater(window);
  if (!inflater.ready()) return Status::resource_exhausted("no memory to inflate gzip");
  z_stream& stream = inflater.stream();
  stream.next_in = const_cast<Bytef*>(compressed.data());  // zlib only reads, but does not say so
  stream.avail_in = static_cast<uInt>(compressed.size());

  std::vector<std::uint8_t> content;
  std::size_t filled = 0;
  for (int outcome = Z_OK; outcome != Z_STREAM_END;) {
    constexpr std::size_t kFirst = 1 << 16;
    if (filled == content.size()) content.resize(std::min(std::max(2 * filled, kFirst), limit + 1));
    stream.next_out = content.data() + filled;
    stream.avail_out = static_cast<uInt>(std::min<std::size_t>(content.size() - filled, 1u << 30));
    const uInt room = stream.avail_out;
    outcome = ::inflate(&stream, Z_NO_FLUSH);
    filled += room - stream.avail_out;
    const std::size_t at = compressed.size() - stream.avail_in;
    if (filled > limit) return Status::data_loss(fmt::format("inflates to more than {} bytes", limit));
    if (outcome == Z_BUF_ERROR || (outcome == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) {
      return Status::data_loss(fmt::format("truncated: the {} stream goes on after its last byte {}", kind, at));
    }
    if (outcome != Z_OK && outcome != Z_STREAM_END) {
      return Status::data_loss(fmt::format("not a sound {} stream at byte {}: {}", kind, at,
                                           stream.msg != nullptr ? stream.msg : ::zError(outcome)));
    }
    if (outcome == Z_STREAM_END && window == kGzip && goes_on(stream)) outcome = ::inflateReset(&stream);
  }
  if (stream.avail_in > 0) {
    return Status::data_loss(fmt::format("{} bytes follow the end of the {} stream", stream.avail_in, kind));
  }
  content.resize(filled);
  return content;
} catch (const std::bad_alloc&) {
  return Status::resource_exhausted("no memory for what it inflates to");
}

}  // namespace

Result<std::vector<std::uint8_t>> inflate_gzip(std::span<const std::uint8_t> compressed, std::size_t limit) {
  return inflated(compressed, limit, kGzip);
}

Result<std::vector<std::uint8_t>> inflate_deflated(std::span<const std::uint8_t> compressed, std::size_t limit) {
  return inflated(compressed, limit, kDeflated);
}

}  // namespace syncopate::worker
