#include "tests/software_gpu/accesses.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/order.h"
#include "tests/software_gpu/where.h"

namespace software_gpu {
namespace {

// Who has touched a byte. 0: nobody. Otherwise the number of a segment, which is what a thread does between two
// barriers, or what a piece of a library's work does; or, of readers, the number of a crowd.
using Who = std::uint32_t;
constexpr Who kNobody = 0, kCrowd = Who{1} << 31;

struct Cell {
  Who writer = kNobody, reader = kNobody;  // has read since it was written
  bool operator==(const Cell&) const = default;
};

// The cell of a word whose bytes have cells of their own, since not all of them were touched by the same.
constexpr Cell kSplit{~Who{0}, ~Who{0}};
constexpr std::size_t kWord = 4;

constexpr unsigned kWarp = 32, kMany = ~0u;

// A segment of the grid that runs, or several that may all have read: of a warp between two meetings (thread is kMany),
// of a block between two barriers (warp, too), of the grid (block, too).
struct Segment {
  unsigned block = 0, warp = 0, thread = 0;
  unsigned barriers = 0, meetings = 0;
};

// A piece of work, and the first of its segments: those of the next one follow.
struct Piece {
  Who first = 0;
  const std::string* name = nullptr;
  const void* given_by = nullptr;
  std::size_t lane = 0;
  std::uint32_t number = 0;
};

// A range of memory with a cell for each word of it, and others for bytes of words that are split.
struct Watched {
  std::uintptr_t begin = 0;  // of a word
  std::size_t bytes = 0;
  Cell *words = nullptr, *split = nullptr;

  bool has(std::uintptr_t address) const { return address - begin < bytes; }
};

// Beyond these, all that was seen is forgotten.
constexpr std::size_t kMostPieces = std::size_t{1} << 18;
constexpr Who kMostSegments = Who{1} << 30;

Cell* new_cells(std::size_t count) {
  void* const cells =
      mmap(nullptr, count * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (cells != MAP_FAILED) return static_cast<Cell*>(cells);
  std::perror("software GPU: memory for what work has touched");
  std::abort();
}

Watched watch(const void* memory, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory), begin = at / kWord * kWord;
  const std::size_t words = (at + bytes - begin + kWord - 1) / kWord;
  return {begin, words * kWord, new_cells(words), new_cells(words * kWord)};
}

// Nobody has touched these words.
void clear(const Watched& part, std::size_t first, std::size_t words) {
  madvise(part.words + first, words * sizeof(Cell), MADV_DONTNEED);
  madvise(part.split + first * kWord, words * kWord * sizeof(Cell), MADV_DONTNEED);
}

class Accesses {
 public:
  // Memory that is watched. That of a block is nobody's when a block begins.
  Watched device;
  std::vector<Watched> shared;
  std::map<std::uintptr_t, Watched> pinned;  // by its address

  void begin_piece() {
    is_known_ = false;
    self_ = first_ = first_of_block_ = kNobody;
    place_ = next_place_ = {};
    before_.fill({});
    segments_.clear();
    joined_.clear();
    released_.clear();
    acquired_.clear();
  }

  void end_piece() {
    for (const std::string& fault : std::exchange(found_, {})) find_fault(fault);
    if (pieces_.size() > kMostPieces || last_ > kMostSegments) forget();
    begin_piece();
  }

  // Cheap, since most threads touch nothing that is watched.
  void begin_segment(const Place& place) {
    next_place_ = place;
    self_ = kNobody;
  }

  void meet_at(const void* word) {
    Released& released = released_[word];
    if (acquired_by_.block != next_place_.block) acquired_.clear();
    acquired_by_ = next_place_;
    acquired_.insert(released.begin(), released.end());
    released.insert(acquired_.begin(), acquired_.end());
    released[next_place_.block] = next_place_.barriers;
  }

  template <bool kWrites>
  void touch(const Watched& part, std::uintptr_t address, std::size_t bytes, bool is_shared, const void* at) {
    if (self_ == kNobody) begin_known_segment();
    const auto update = [&](Cell& cell) { cell = kWrites ? written(cell, is_shared, at) : read(cell, is_shared, at); };
    const std::size_t end = address - part.begin + bytes;
    Cell old = kSplit, changed;  // neighbours have mostly been touched by the same
    for (std::size_t i = address - part.begin; i < end;) {
      Cell& word = part.words[i / kWord];
      if (word != kSplit && i % kWord == 0 && end - i >= kWord) {
        if (word == old) {
          word = changed;
        } else {
          old = word;
          update(word);
          changed = word;
        }
        i += kWord;
        continue;
      }
      Cell* const split = part.split + i / kWord * kWord;
      if (word != kSplit) std::fill_n(split, kWord, std::exchange(word, kSplit));
      for (const std::size_t next = (i / kWord + 1) * kWord; i < std::min(next, end); ++i) update(split[i % kWord]);
      if (std::all_of(split, split + kWord, [&](const Cell& cell) { return cell == split[0]; })) word = split[0];
    }
  }

 private:
  void begin_known_piece() {
    const Running& running = *Running::now();
    is_known_ = true;
    first_ = first_of_block_ = last_ + 1;
    pieces_.push_back(
        {first_, &*names_.insert(running.name()).first, running.given_by(), running.lane(), running.piece()});
  }

  void begin_known_segment() {
    if (!is_known_) begin_known_piece();
    const Place place = std::exchange(place_, next_place_);
    const bool is_of_block = place_.block == place.block && place_.barriers == place.barriers;
    const bool is_of_warp = place_.thread / kWarp == place.thread / kWarp && place_.meetings == place.meetings;
    if (!is_of_block) crowd_of_block_ = kNobody;
    if (!is_of_block || !is_of_warp) crowd_of_warp_ = kNobody;
    if (place_.block != place.block) first_of_block_ = last_ + 1;
    self_ = add({place_.block, place_.thread / kWarp, place_.thread, place_.barriers, place_.meetings});
  }

  Who add(const Segment& segment) {
    segments_.push_back(segment);
    return ++last_;
  }

  Cell written(const Cell& old, bool is_shared, const void* at) {
    if (old.writer == self_ && old.reader == kNobody) return old;
    if (!is_ordered(old.writer, is_shared)) find(old.writer, "writes what", "writes", at);
    if (old.reader != old.writer && !is_ordered(old.reader, is_shared)) find(old.reader, "writes what", "reads", at);
    return {self_, kNobody};
  }

  Cell read(const Cell& old, bool is_shared, const void* at) {
    if (old.reader == self_) return old;
    if (!is_ordered(old.writer, is_shared)) find(old.writer, "reads what", "writes", at);
    return {old.writer, is_ordered(old.reader, is_shared) ? self_ : crowd(old.reader)};
  }

  // Whether all that this one did is ordered before what is done now.
  bool is_ordered(Who who, bool is_shared) {
    if (who == kNobody || who == self_) return true;
    if ((who & kCrowd) != 0)
      return std::ranges::all_of(crowds_[who - kCrowd], [&](std::size_t i) { return is_before(pieces_[i]); });
    if (is_shared && who < first_of_block_) return true;
    if (who >= first_) return is_ordered(segments_[who - first_]);
    for (const Segments& some : before_) {
      if (who - some.first < some.count) return true;
    }
    const std::size_t i = piece_of(who);
    if (!is_before(pieces_[i])) return false;
    std::ranges::rotate(before_, before_.end() - 1);
    before_[0] = {pieces_[i].first, pieces_[i + 1].first - pieces_[i].first};
    return true;
  }

  bool is_ordered(const Segment& one) const {
    if (one.block != place_.block) {
      if (acquired_by_.block != place_.block || place_.barriers <= acquired_by_.barriers) return false;
      const auto released = acquired_.find(one.block);
      return released != acquired_.end() && one.barriers < released->second;
    }
    if (one.thread == place_.thread || one.barriers < place_.barriers) return true;
    return one.warp == place_.thread / kWarp && one.meetings < place_.meetings;
  }

  static bool is_before(const Piece& piece) { return Running::now()->knowledge().has(piece.lane, piece.number); }

  std::size_t piece_of(Who who) const {
    const auto next = std::ranges::upper_bound(pieces_, who, {}, &Piece::first);
    return static_cast<std::size_t>(next - pieces_.begin()) - 1;
  }

  // The readers that are there with the one that reads now.
  Who crowd(Who readers) {
    if (readers < first_ || (readers & kCrowd) != 0) return crowd_of_pieces(readers);
    const Segment& one = segments_[readers - first_];
    const unsigned warp = place_.thread / kWarp;
    Segment both{place_.block, warp, kMany, place_.barriers, place_.meetings};
    Who* crowd = &crowd_of_warp_;
    if (one.block != place_.block) {
      both = {kMany, kMany, kMany, 0, 0};
      crowd = &crowd_of_grid_;
    } else if (one.warp != warp) {
      both.warp = kMany;
      crowd = &crowd_of_block_;
    }
    if (*crowd < first_) *crowd = add(both);
    return *crowd;
  }

  Who crowd_of_pieces(Who readers) {
    const bool is_crowd = (readers & kCrowd) != 0;
    const std::size_t piece = is_crowd ? 0 : piece_of(readers);
    Who& joined = joined_[is_crowd ? readers : pieces_[piece].first];
    if (joined != kNobody) return joined;
    std::vector<std::size_t> crowd = is_crowd ? crowds_[readers - kCrowd] : std::vector{piece};
    const std::size_t self = pieces_.size() - 1;
    if (crowd.back() == self) return joined = readers;
    std::erase_if(crowd, [&](std::size_t each) { return is_before(pieces_[each]); });
    crowd.push_back(self);
    crowds_.push_back(std::move(crowd));
    return joined = kCrowd + static_cast<Who>(crowds_.size() - 1);
  }

  void find(Who who, const char* here, const char* there, const void* at) {
    const std::string& self = *pieces_.back().name;
    if ((who & kCrowd) == 0 && who >= first_) {
      if (told_.insert({&self, nullptr}).second) found_.push_back(between_threads(self, who, here, there, at));
      return;
    }
    std::vector<std::size_t> others{(who & kCrowd) != 0 ? 0 : piece_of(who)};
    if ((who & kCrowd) != 0) others = crowds_[who - kCrowd];
    for (const std::size_t i : others) {
      const Piece& other = pieces_[i];
      if (is_before(other) || !told_.insert(std::minmax(&self, other.name)).second) continue;
      found_.push_back(self + " " + here + " " + *other.name + " " + there +
                       ", and no stream, event, graph or wait of the host's orders them; the other is of " +
                       place_in_source(other.given_by));
    }
  }

  std::string between_threads(const std::string& self, Who who, const char* here, const char* there,
                              const void* at) const {
    const Segment& one = segments_[who - first_];
    const auto number = [](unsigned value) { return value == kMany ? "one of several" : std::to_string(value); };
    return self + ": thread " + number(place_.thread) + " of block " + number(place_.block) + " " + here + " thread " +
           number(one.thread) + " of block " + number(one.block) + " " + there +
           ", and no barrier is between them: " + place_in_source(at);
  }

  void forget() {
    clear(device, 0, device.bytes / kWord);
    for (const Watched& part : shared) clear(part, 0, part.bytes / kWord);
    for (const auto& [begin, part] : pinned) clear(part, 0, part.bytes / kWord);
    pieces_.clear();
    crowds_.clear();
    last_ = kNobody;
  }

  std::vector<Piece> pieces_;
  std::vector<std::vector<std::size_t>> crowds_;  // pieces that have read
  std::set<std::string> names_;
  std::set<std::pair<const std::string*, const std::string*>> told_;
  Who last_ = kNobody;  // segment that was given a number

  // About the piece that runs.
  bool is_known_ = false;  // has touched something
  Who first_ = kNobody;
  std::vector<Segment> segments_;
  Place place_;         // of the segment
  Place next_place_;    // of the thread that runs, of which there may be no segment yet
  Who self_ = kNobody;  // segment of the thread that runs; kNobody: has touched nothing yet
  Who first_of_block_ = kNobody;
  Who crowd_of_warp_ = kNobody, crowd_of_block_ = kNobody, crowd_of_grid_ = kNobody;
  struct Segments {
    Who first = 0, count = 0;
  };
  std::array<Segments, 4> before_;                // of other pieces that were found to be before this one
  std::map<Who, Who> joined_;                     // crowds, by who was there before
  using Released = std::map<unsigned, unsigned>;  // barriers of a block before an atomic operation of its own
  std::map<const void*, Released> released_;      // by the word
  Released acquired_;                             // by the block that runs, in the place below
  Place acquired_by_;
  std::vector<std::string> found_;  // faults, told when it ends: a thread's stack is small
};

// Never destroyed: threads of the program may still call when it ends.
Accesses& all = *new Accesses;

// Has the cells at hand at once: else each page of them costs two faults.
void bring_cells(const Watched& part, std::uintptr_t address, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const auto first = reinterpret_cast<std::uintptr_t>(part.words + (address - part.begin) / kWord) / kPage * kPage;
  madvise(reinterpret_cast<void*>(first), bytes / kWord * sizeof(Cell), MADV_POPULATE_WRITE);
}

template <bool kWrites>
void touch_by_library(const void* memory, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (bytes > 4096 && all.device.has(address)) bring_cells(all.device, address, bytes);
  if (all.device.has(address)) return all.touch<kWrites>(all.device, address, bytes, false, nullptr);
  const auto behind = all.pinned.upper_bound(address);
  if (behind == all.pinned.begin()) return;
  const Watched& part = std::prev(behind)->second;
  if (part.has(address)) all.touch<kWrites>(part, address, bytes, false, nullptr);
}

template <bool kWrites>
inline void touch_by_thread(const void* memory, std::size_t bytes, const void* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (all.device.has(address)) return all.touch<kWrites>(all.device, address, bytes, false, at);
  for (const Watched& part : all.shared) {
    if (part.has(address)) return all.touch<kWrites>(part, address, bytes, true, at);
  }
}

}  // namespace

unsigned increment(unsigned* word, unsigned most) {
  all.meet_at(word);
  const unsigned before = *word;
  *word = before >= most ? 0 : before + 1;
  return before;
}

void watch_device(const char* arena, std::size_t bytes) { all.device = watch(arena, bytes); }

void watch_pinned(const void* memory, std::size_t bytes) {
  all.pinned[reinterpret_cast<std::uintptr_t>(memory)] = watch(memory, bytes);
}

void forget_pinned(const void* memory) {
  const auto found = all.pinned.find(reinterpret_cast<std::uintptr_t>(memory));
  const Watched& part = found->second;
  munmap(part.words, part.bytes / kWord * sizeof(Cell));
  munmap(part.split, part.bytes * sizeof(Cell));
  all.pinned.erase(found);
}

void watch_shared(const char* begin, const char* end) {
  all.shared.push_back(watch(begin, static_cast<std::size_t>(end - begin)));
}

void forget_device(const void* memory, std::size_t bytes) {
  clear(all.device, (reinterpret_cast<std::uintptr_t>(memory) - all.device.begin) / kWord, bytes / kWord);
}

void begin_accesses() { all.begin_piece(); }
void end_accesses() { all.end_piece(); }
void reads(const void* memory, std::size_t bytes) { touch_by_library<false>(memory, bytes); }
void writes(const void* memory, std::size_t bytes) { touch_by_library<true>(memory, bytes); }
void run_thread(const Place& place) { all.begin_segment(place); }

}  // namespace software_gpu

// What the compiler calls at each load and store of a .cu's.
#define SOFTWARE_GPU_ACCESS(name, kWrites, bytes) \
  void name(void* memory) { software_gpu::touch_by_thread<kWrites>(memory, bytes, __builtin_return_address(0)); }
#define SOFTWARE_GPU_ACCESSES(bytes)                              \
  SOFTWARE_GPU_ACCESS(__tsan_read##bytes, false, bytes)           \
  SOFTWARE_GPU_ACCESS(__tsan_write##bytes, true, bytes)           \
  SOFTWARE_GPU_ACCESS(__tsan_unaligned_read##bytes, false, bytes) \
  SOFTWARE_GPU_ACCESS(__tsan_unaligned_write##bytes, true, bytes)

extern "C" {

SOFTWARE_GPU_ACCESSES(1)
SOFTWARE_GPU_ACCESSES(2)
SOFTWARE_GPU_ACCESSES(4)
SOFTWARE_GPU_ACCESSES(8)
SOFTWARE_GPU_ACCESSES(16)

void __tsan_read_range(void* memory, std::size_t bytes) {
  software_gpu::touch_by_thread<false>(memory, bytes, __builtin_return_address(0));
}
void __tsan_write_range(void* memory, std::size_t bytes) {
  software_gpu::touch_by_thread<true>(memory, bytes, __builtin_return_address(0));
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_init() {}

}  // extern "C"
