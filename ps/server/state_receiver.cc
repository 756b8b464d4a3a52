#include "ps/server/state_receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "ps/transport_memory.h"

namespace syncopate::ps {
namespace {

// Puts what the message carries behind the first `begin` of `to`. A piece that has come before changes nothing.
template <typename T>
Status append(const Message& message, std::uint64_t begin, std::vector<T>& to) {
  const std::size_t bytes = message.payload().size();
  if (bytes % sizeof(T) != 0) return Status::invalid_argument(fmt::format("a state's piece of {} bytes", bytes));
  if (begin > to.size()) {
    return Status::invalid_argument(fmt::format("a state's piece from {} on behind {}", begin, to.size()));
  }
  if (begin < to.size()) return Status();
  to.resize(begin + bytes / sizeof(T));
  if (bytes > 0) std::memcpy(to.data() + begin, message.payload().data(), bytes);
  return Status();
}

}  // namespace

Status StateReceiver::accept(const wire::State& piece, const Message& message) {
  if (complete_) return Status::invalid_argument("a piece of a state behind its end");
  switch (piece.piece_case()) {
    case wire::State::kPart: {
      const std::size_t floats = message.payload().size() / sizeof(float);
      if (floats * sizeof(float) != message.payload().size() || floats == 0 || piece.begin() + floats < floats) break;
      state_.put(piece.part(), piece.begin(), message.floats());
      return Status();
    }
    case wire::State::kCounts:
      state_.counts[piece.counts()].clear();
      return append(message, 0, state_.counts[piece.counts()]);
    case wire::State::kKeys:
      return append(message, piece.begin(), state_.rows[piece.keys()].keys);
    case wire::State::kRows:
      state_.rows[piece.rows()].row_floats = piece.row_floats();
      return append(message, piece.begin(), state_.rows[piece.rows()].values);
    case wire::State::kEnd:
      complete_ = true;
      goes_on_ = piece.end();
      state_.step = piece.step();
      return Status();
    default:
      break;
  }
  return Status::invalid_argument(fmt::format("a state's piece of {} bytes", message.payload().size()));
}

}  // namespace syncopate::ps
