#include "experiments/lab/trace/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "common/os/append_file.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kBytesAWrite = std::size_t{1} << 20;

// Returns what orders "worker 2" before "worker 10".
auto order_of(const ProcessTrace& trace) {
  const std::size_t space = trace.process.find(' ');
  return std::tuple(trace.process.substr(0, space), trace.process.size(), trace.process);
}

}  // namespace

void TraceLog::add(const std::string& process, std::span<const TraceEvent> events, std::int64_t dropped) {
  auto found = std::ranges::find(traces_, process, &ProcessTrace::process);
  if (found == traces_.end()) {
    const ProcessTrace fresh{.process = process, .events = {}, .dropped = 0};
    const auto before =
        std::ranges::find_if(traces_, [&](const ProcessTrace& trace) { return order_of(fresh) < order_of(trace); });
    found = traces_.insert(before, fresh);
  }
  found->events.insert(found->events.end(), events.begin(), events.end());
  found->dropped += dropped;
}

Result<TraceFacts> TraceLog::write(const std::string& folder, const std::string& name, const TraceNotes& notes,
                                   TimePoint origin) const {
  const TraceTimeline timeline = make_timeline(traces_, origin);
  const std::string path = folder + "/" + name, part = folder + "/." + name;
  {
    SYNCOPATE_ASSIGN_OR_RETURN(AppendFile file, AppendFile::create(part));
    Status written;
    std::size_t waiting = 0;
    write_trace_json(timeline, notes, [&](std::string_view text) {
      if (!written.ok()) return;
      file.add(text);
      waiting += text.size();
      if (waiting < kBytesAWrite) return;
      waiting = 0;
      written = file.flush();
    });
    if (written.ok()) written = file.flush();
    std::error_code ignored;
    if (!written.ok()) {
      std::filesystem::remove(part, ignored);
      return written;
    }
  }
  std::error_code error;
  std::filesystem::rename(part, path, error);
  if (error) return Status::resource_exhausted(fmt::format("{}: cannot be written: {}", path, error.message()));
  return TraceFacts{.file = name, .steps = notes.steps, .events = timeline.events, .dropped = timeline.dropped};
}

}  // namespace syncopate::experiments
