#include "common/step_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "common/step_fields.h"

namespace syncopate {
namespace {

// The file is this mark, then entries: a Header, and that many bytes. All of one host, so bytes are in its order.
constexpr std::string_view kMark = "syncopate-steps-2\n";
constexpr std::string_view kMarkOfAll = "syncopate-steps-";  // of every version
constexpr Duration kBetweenWrites = std::chrono::milliseconds(200);
constexpr std::size_t kMostBytesOfAnEntry = 4096;
constexpr std::size_t kBytesOfARead = std::size_t{1} << 18;

enum class EntryKind : std::uint32_t { kStep = 1, kEvaluation = 2, kFact = 3, kServer = 4, kTrace = 5 };

struct Header {
  EntryKind kind = EntryKind::kStep;
  std::uint32_t bytes = 0;
};

// Each begins with its counts and durations, and then its times, in nanoseconds.
struct WrittenEvaluation {
  static constexpr std::size_t kCounts = 1, kTimes = 1;
  std::int64_t step, taken;
  double loss, accuracy, epoch;
};

// A part of a trace: this, and then events.
struct WrittenTrace {
  static constexpr std::size_t kCounts = 2, kTimes = 0;
  std::int64_t server, dropped;
};

constexpr std::size_t kMostEventsOfAnEntry = (kMostBytesOfAnEntry - sizeof(WrittenTrace)) / sizeof(TraceNumbers);

using ServerNumbers = std::array<std::int64_t, 1 + kServerFigures>;  // the server's, and its figures

TimePoint time_of(std::int64_t nanoseconds) { return TimePoint(Duration(nanoseconds)); }

void append(std::string& text, EntryKind kind, std::string_view payload) {
  const Header header{kind, static_cast<std::uint32_t>(payload.size())};
  text.append(reinterpret_cast<const char*>(&header), sizeof(header));
  text.append(payload);
}

template <typename Written>
void append(std::string& text, EntryKind kind, const Written& value) {
  append(text, kind, std::string_view(reinterpret_cast<const char*>(&value), sizeof(value)));
}

// Whether it can be a count or a duration, or a time, with which others calculate.
bool can_be(std::int64_t number) { return number >= -1 && number <= kMostToldNumber; }
bool can_be_time(std::int64_t number) { return number >= -1 && number <= kLatestTime; }

template <typename Written>
bool has_counts(const Written& value) {
  std::array<std::int64_t, Written::kCounts + Written::kTimes> numbers;
  std::memcpy(numbers.data(), &value, sizeof(numbers));
  const std::span all(numbers);
  return std::ranges::all_of(all.first(Written::kCounts), can_be) &&
         std::ranges::all_of(all.subspan(Written::kCounts), can_be_time);
}

// 8 bytes for each of step_fields().
void append(std::string& text, const StepRecord& record) {
  std::string payload;
  for (const StepField& field : step_fields()) {
    const std::int64_t bits = field.get(record);
    payload.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
  }
  append(text, EntryKind::kStep, std::string_view(payload));
}

Result<StepRecord> read_step(std::string_view payload) {
  if (payload.size() != step_fields().size() * sizeof(std::int64_t)) {
    return Status::data_loss("an entry has the wrong size");
  }
  StepRecord record;
  for (const StepField& field : step_fields()) {
    std::int64_t bits = 0;
    std::memcpy(&bits, payload.data(), sizeof(bits));
    payload.remove_prefix(sizeof(bits));
    const bool can_it_be = field.kind == StepField::Kind::kReal   ? true
                           : field.kind == StepField::Kind::kTime ? can_be_time(bits)
                                                                  : can_be(bits);
    if (!can_it_be) return Status::data_loss("an entry has a count or a time that cannot be");
    field.set(bits, record);
  }
  return record;
}

template <typename Written>
Result<Written> read_as(std::string_view payload) {
  if (payload.size() != sizeof(Written)) return Status::data_loss("an entry has the wrong size");
  Written value;
  std::memcpy(&value, payload.data(), sizeof(value));
  if (!has_counts(value)) return Status::data_loss("an entry has a count or a time that cannot be");
  return value;
}

void append(std::string& text, const ToldServer& told) {
  ServerNumbers numbers{told.server};
  std::ranges::copy(bits_of(told.figures), numbers.begin() + 1);
  append(text, EntryKind::kServer, numbers);
}

Result<ToldServer> read_server(std::string_view payload) {
  ServerNumbers numbers;
  if (payload.size() != sizeof(numbers)) return Status::data_loss("an entry has the wrong size");
  std::memcpy(&numbers, payload.data(), sizeof(numbers));
  if (!std::ranges::all_of(numbers, can_be)) return Status::data_loss("an entry has a count or a time that cannot be");
  return ToldServer{.server = numbers[0], .figures = server_figures_in(std::span(numbers).subspan(1))};
}

void append(std::string& text, const ToldTrace& told) {
  std::span<const TraceEvent> rest = told.events;
  std::int64_t dropped = told.dropped;  // said with the first part
  do {
    const std::span<const TraceEvent> part = rest.first(std::min(rest.size(), kMostEventsOfAnEntry));
    const WrittenTrace head{.server = told.server, .dropped = std::exchange(dropped, 0)};
    std::string payload(reinterpret_cast<const char*>(&head), sizeof(head));
    for (const TraceEvent& event : part) {
      const TraceNumbers numbers = numbers_of(event);
      payload.append(reinterpret_cast<const char*>(&numbers), sizeof(numbers));
    }
    append(text, EntryKind::kTrace, std::string_view(payload));
    rest = rest.subspan(part.size());
  } while (!rest.empty());
}

Result<ToldTrace> read_trace(std::string_view payload) {
  SYNCOPATE_ASSIGN_OR_RETURN(const WrittenTrace head, read_as<WrittenTrace>(payload.substr(0, sizeof(WrittenTrace))));
  ToldTrace told{.server = head.server, .events = {}, .dropped = std::max<std::int64_t>(head.dropped, 0)};
  payload.remove_prefix(sizeof(head));
  if (payload.size() % sizeof(TraceNumbers) != 0) return Status::data_loss("an entry has the wrong size");
  for (; !payload.empty(); payload.remove_prefix(sizeof(TraceNumbers))) {
    TraceNumbers numbers;
    std::memcpy(&numbers, payload.data(), sizeof(numbers));
    const std::optional<TraceEvent> event = trace_event_in(numbers);
    if (!event) return Status::data_loss("an event is none that a process records");
    told.events.push_back(*event);
  }
  return told;
}

Result<StepFileEntry> read_entry(EntryKind kind, std::string_view payload) {
  switch (kind) {
    case EntryKind::kStep: {
      SYNCOPATE_ASSIGN_OR_RETURN(const StepRecord step, read_step(payload));
      return StepFileEntry(step);
    }
    case EntryKind::kEvaluation: {
      SYNCOPATE_ASSIGN_OR_RETURN(const WrittenEvaluation evaluation, read_as<WrittenEvaluation>(payload));
      return StepFileEntry(ToldEvaluation{.step = evaluation.step,
                                          .taken = time_of(evaluation.taken),
                                          .loss = evaluation.loss,
                                          .accuracy = evaluation.accuracy,
                                          .epoch = evaluation.epoch});
    }
    case EntryKind::kFact: {
      const std::size_t end = payload.find('\0');
      if (end == std::string_view::npos) return Status::data_loss("a fact has no name");
      return StepFileEntry(
          ToldFact{.name = std::string(payload.substr(0, end)), .value = std::string(payload.substr(end + 1))});
    }
    case EntryKind::kServer: {
      SYNCOPATE_ASSIGN_OR_RETURN(const ToldServer server, read_server(payload));
      return StepFileEntry(server);
    }
    case EntryKind::kTrace: {
      SYNCOPATE_ASSIGN_OR_RETURN(ToldTrace told, read_trace(payload));
      return StepFileEntry(std::move(told));
    }
  }
  return Status::data_loss("an entry is of no known kind");
}

}  // namespace

Result<StepFileWriter> StepFileWriter::create(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
  if (!file.open()) return Status::resource_exhausted(fmt::format("{}: cannot be written: {}", path, strerror(errno)));
  return StepFileWriter(std::move(file), path);
}

StepFileWriter::StepFileWriter(FileDescriptor file, std::string path)
    : file_(std::move(file)), path_(std::move(path)), kept_(kMark) {}

StepFileWriter::~StepFileWriter() {
  if (file_.open()) (void)flush();
}

void StepFileWriter::add(const StepFileEntry& entry, TimePoint now) {
  if (const auto* step = std::get_if<StepRecord>(&entry)) {
    append(kept_, *step);
  } else if (const auto* told = std::get_if<ToldEvaluation>(&entry)) {
    append(kept_, EntryKind::kEvaluation,
           WrittenEvaluation{.step = told->step,
                             .taken = told->taken.time_since_epoch().count(),
                             .loss = told->loss,
                             .accuracy = told->accuracy,
                             .epoch = told->epoch});
  } else if (const auto* server = std::get_if<ToldServer>(&entry)) {
    append(kept_, *server);
  } else if (const auto* trace = std::get_if<ToldTrace>(&entry)) {
    append(kept_, *trace);
  } else if (const auto* fact = std::get_if<ToldFact>(&entry)) {
    std::string text = fact->name;
    text += '\0';
    text += fact->value;
    append(kept_, EntryKind::kFact, std::string_view(text).substr(0, kMostBytesOfAnEntry));
  }
  if (now - last_write_ < kBetweenWrites) return;
  last_write_ = now;
  if (const Status status = flush(); failure_.ok()) failure_ = status;
}

Status StepFileWriter::flush() {
  if (!failure_.ok()) return failure_;
  std::size_t done = 0;
  while (done < kept_.size()) {
    const ssize_t count = ::write(file_.get(), kept_.data() + done, kept_.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      failure_ = Status::resource_exhausted(fmt::format("{}: cannot be written: {}", path_, strerror(errno)));
      break;
    }
    done += static_cast<std::size_t>(count);
  }
  kept_.clear();
  return failure_;
}

Status StepFileReader::append_new_bytes() {
  if (!file_.open()) file_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_.open()) {
    if (errno == ENOENT) return {};
    return Status::data_loss(fmt::format("{}: cannot be read: {}", path_, strerror(errno)));
  }
  std::array<char, kBytesOfARead> bytes;
  for (;;) {
    const ssize_t count = ::read(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status::data_loss(fmt::format("{}: cannot be read: {}", path_, strerror(errno)));
    unread_.append(bytes.data(), static_cast<std::size_t>(count));
    if (static_cast<std::size_t>(count) < bytes.size()) return {};
  }
}

Result<std::vector<StepFileEntry>> StepFileReader::read() {
  SYNCOPATE_RETURN_IF_ERROR(append_new_bytes());
  std::vector<StepFileEntry> entries;
  std::string_view rest = unread_;
  const auto is_none = [&](const std::string& why) {
    return Status::data_loss(fmt::format("{}: is no file of steps: {}", path_, why));
  };
  if (!has_begun_) {
    if (rest.substr(0, kMark.size()) != kMark.substr(0, rest.size())) {
      if (rest.starts_with(kMarkOfAll)) return is_none("another version of Syncopate's package has written it");
      return is_none("it begins otherwise");
    }
    if (rest.size() < kMark.size()) return entries;
    has_begun_ = true;
    rest.remove_prefix(kMark.size());
  }
  while (rest.size() >= sizeof(Header)) {
    Header header;
    std::memcpy(&header, rest.data(), sizeof(header));
    if (header.bytes > kMostBytesOfAnEntry) return is_none("an entry is too large");
    if (rest.size() < sizeof(header) + header.bytes) break;
    Result<StepFileEntry> entry = read_entry(header.kind, rest.substr(sizeof(header), header.bytes));
    if (!entry.ok()) return is_none(entry.status().message());
    entries.push_back(std::move(*entry));
    rest.remove_prefix(sizeof(header) + header.bytes);
  }
  unread_.erase(0, unread_.size() - rest.size());
  return entries;
}

}  // namespace syncopate
