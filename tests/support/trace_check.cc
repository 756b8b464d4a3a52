#include "tests/support/trace_check.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <utility>

namespace syncopate::testing_support {
namespace {

using nlohmann::json;
using Track = std::pair<int, int>;  // process, thread

struct Slice {
  std::int64_t begin = 0, end = 0;  // ns
  std::string name;
};

struct Arrow {
  int begins = 0, steps = 0, ends = 0;
  std::int64_t first = 0, last = 0;  // ns
};

std::int64_t nanoseconds(const json& value) { return std::llround(value.get<double>() * 1000); }

class Check {
 public:
  CheckedTrace run(const json& trace) {
    for (const json& event : trace.at("traceEvents")) take(event);
    for (const auto& [id, arrow] : arrows_) {
      if (arrow.begins != 1 || arrow.ends != 1) {
        fault("arrow {} begins {} times and ends {} times", id, arrow.begins, arrow.ends);
      } else if (arrow.last < arrow.first) {
        fault("arrow {} ends before it begins", id);
      }
      ++result_.arrows;
      result_.steps_of_arrows += arrow.steps;
    }
    for (const auto& [track, under_way] : under_way_) {
      if (!named_.contains(track)) fault("track {} of process {} has no name", track.second, track.first);
    }
    check_counts(trace.at("otherData"));
    return std::move(result_);
  }

 private:
  template <typename... T>
  void fault(fmt::format_string<T...> text, T&&... values) {
    result_.faults.push_back(fmt::format(text, std::forward<T>(values)...));
  }

  void take(const json& event) {
    const std::string phase = event.at("ph");
    const Track track{event.at("pid"), event.value("tid", 0)};
    if (phase == "M") {
      if (event.at("name") == "thread_name") named_[track] = event.at("args").at("name");
      if (event.at("name") == "process_name") result_.processes.push_back(event.at("args").at("name"));
      return;
    }
    const std::int64_t time = nanoseconds(event.at("ts"));
    if (time < last_) fault("{} at {} ns stands behind what is at {} ns", event.at("name").dump(), time, last_);
    last_ = time;
    if (phase == "X") {
      take_slice(event, track, time);
    } else if (phase == "C") {
      ++result_.counters[event.at("name")];
    } else if (phase == "i") {
      ++instants_;
    } else {
      take_arrow(event, track, phase, time);
    }
  }

  void take_slice(const json& event, const Track& track, std::int64_t begin) {
    const Slice slice{begin, begin + nanoseconds(event.at("dur")), event.at("name")};
    if (slice.end < slice.begin) fault("{} ends before it begins", slice.name);
    std::vector<Slice>& under_way = under_way_[track];
    while (!under_way.empty() && under_way.back().end <= slice.begin) under_way.pop_back();
    if (!under_way.empty() && slice.end > under_way.back().end) {
      fault("on track {} of process {}, {} at {} ns overlaps {} and does not lie within it", track.second, track.first,
            slice.name, slice.begin, under_way.back().name);
    }
    under_way.push_back(slice);
    const std::string category = event.at("cat");
    ++result_.slices[category];
    events_ += category == "message" ? 0 : 1;
    last_slice_[track] = slice.begin;
  }

  // It belongs to the slice that has just begun on its track.
  void take_arrow(const json& event, const Track& track, const std::string& phase, std::int64_t time) {
    const std::string id = event.at("id").dump();
    Arrow& arrow = arrows_[id];
    const auto slice = last_slice_.find(track);
    if (slice == last_slice_.end() || slice->second != time) fault("arrow {} leaves or meets no event", id);
    if (phase == "s") {
      ++arrow.begins;
      arrow.first = time;
    } else if (phase == "f") {
      ++arrow.ends;
      arrow.last = time;
    } else if (phase == "t") {
      ++arrow.steps;
    } else {
      fault("{} is no phase that is known", phase);
    }
  }

  void check_counts(const json& notes) {
    if (notes.at("events") != events_)
      fault("{} events, and {} are said to be there", events_, notes.at("events").dump());
    if ((notes.at("dropped") > 0) != (instants_ > 0)) {
      fault("{} dropped, and {} events say so", notes.at("dropped").dump(), instants_);
    }
  }

  CheckedTrace result_;
  std::int64_t last_ = INT64_MIN;
  int events_ = 0, instants_ = 0;
  std::map<Track, std::vector<Slice>> under_way_;
  std::map<Track, std::int64_t> last_slice_;  // when the last one began
  std::map<Track, std::string> named_;
  std::map<std::string, Arrow> arrows_;
};

}  // namespace

CheckedTrace check_trace(const json& trace) { return Check().run(trace); }

}  // namespace syncopate::testing_support
