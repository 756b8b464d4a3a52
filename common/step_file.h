// StepFile: what a program that run_experiment has started tells of its training, while it goes on. Each process writes
// a file of its own, from begin to end, and run_experiment reads what has been added, on another host through a relay;
// so neither waits for the other, and what was written before a kill is kept. Times are of the host's monotonic clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/server_figures.h"
#include "common/status.h"
#include "common/step_record.h"
#include "common/trace/trace_event.h"

namespace syncopate {

// What a program has found its model to be worth. A figure that it does not know is not a number.
struct ToldEvaluation {
  std::int64_t step = 0;  // steps that this process had finished
  TimePoint taken{};      // when the last of them had been
  double loss = 0;
  double accuracy = 0;  // 0 to 1
  double epoch = 0;
};

struct ToldFact {
  std::string name, value;
};
inline constexpr const char* kParametersFact = "parameters";  // how many the model has
inline constexpr const char* kRefusedFact = "refused";  // why the program cannot do what is asked; it makes no step

// What a parameter server has had to do, told when it has ended. A program may have several of one number, one after
// the other or together.
struct ToldServer {
  std::int64_t server = 0;  // its number
  ServerFigures figures;

  bool operator==(const ToldServer&) const = default;
};

// What a process has traced, or a server that it has started. A process may tell it in parts.
struct ToldTrace {
  std::int64_t server = -1;  // its number; -1: the process itself
  std::vector<TraceEvent> events;
  std::int64_t dropped = 0;  // more that did not fit

  bool operator==(const ToldTrace&) const = default;
};

// Where the program does not say what its batch's loss or accuracy was, it is not a number.
inline constexpr std::int64_t kMostToldNumber = std::int64_t{1} << 53;  // of nanoseconds 104 days
using StepFileEntry = std::variant<StepRecord, ToldEvaluation, ToldFact, ToldServer, ToldTrace>;

class StepFileWriter {
 public:
  // Creates the file. This and flush() fail with resource exhausted, the path and the system's reason.
  static Result<StepFileWriter> create(const std::string& path);

  // Keeps the entry in memory; what is kept is written with the first one after 200 ms, by flush() and by the
  // destructor. A failure to write is kept until flush(). A long trace becomes several entries.
  void add(const StepFileEntry& entry, TimePoint now);
  Status flush();

  StepFileWriter(StepFileWriter&&) = default;
  StepFileWriter& operator=(StepFileWriter&&) = default;
  ~StepFileWriter();

 private:
  StepFileWriter(FileDescriptor file, std::string path);

  FileDescriptor file_;
  std::string path_;
  std::string kept_;
  TimePoint last_write_{};
  Status failure_;
};

class StepFileReader {
 public:
  explicit StepFileReader(std::string path) : path_(std::move(path)) {}

  // Returns the whole entries that were added since the last call; none before the file is there. Fails with data loss
  // if they are none of a StepFileWriter's. Counts and durations are -1 to kMostToldNumber, times to kLatestTime, so
  // that they can be added and subtracted.
  Result<std::vector<StepFileEntry>> read();

 private:
  Status append_new_bytes();

  std::string path_;
  FileDescriptor file_;
  std::string unread_;  // bytes that have not become an entry yet
  bool has_begun_ = false;
};

}  // namespace syncopate
