#include "experiments/lab/report/report_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "common/group_limits.h"
#include "experiments/lab/report/json_members.h"

namespace syncopate::experiments {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kMostSeconds = 1e9;  // more would not fit a Duration

// A description names each figure once. Given a Writer it makes members of figures, and given a Reader figures of
// members.
class Writer {
 public:
  static constexpr bool kReads = false;
  explicit Writer(Json& object) : object_(object) {}

  template <typename T>
  void operator()(const char* name, const T& value) {
    object_[name] = value;
  }
  void operator()(const char* name, Duration value) { object_[name] = seconds(value); }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value) {
    object_[name] = nullptr;
    if (value) (*this)(name, *value);
  }
  // No number is null.
  void or_none(const char* name, double value) { object_[name] = value; }

  template <typename Describe>
  void object(const char* name, const Describe& describe) {
    object_[name] = Json::object();
    Writer inner(object_[name]);
    describe(inner);
  }
  template <typename T, typename Describe>
  void object_if(const char* name, const std::optional<T>& value, const Describe& describe) {
    object_[name] = nullptr;
    if (value) object(name, [&](Writer& inner) { describe(inner, *value); });
  }
  template <typename T, typename Describe>
  void list(const char* name, const std::vector<T>& values, const Describe& describe) {
    Json& list = object_[name] = Json::array();
    for (const T& value : values) {
      Writer inner(list.emplace_back(Json::object()));
      describe(inner, value);
    }
  }
  template <typename T, typename Describe>
  void by_rank(const char* name, const char* rank, const std::map<int, T>& values, const Describe& describe) {
    Json& list = object_[name] = Json::array();
    for (const auto& [number, value] : values) {
      Writer inner(list.emplace_back(Json::object()));
      inner(rank, number);
      describe(inner, value);
    }
  }

 private:
  Json& object_;
};

class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(const JsonMembers& members) : members_(members) {}

  void operator()(const char* name, double& value) { value = members_.number(name); }
  void operator()(const char* name, int& value) { value = static_cast<int>(members_.count(name)); }
  void operator()(const char* name, std::int64_t& value) { value = members_.count(name); }
  void operator()(const char* name, std::string& value) { value = members_.text(name); }
  void operator()(const char* name, Duration& value) { value = duration_of(members_.number(name)); }
  void operator()(const char* name, std::optional<double>& value) { value = members_.maybe_number(name); }
  void operator()(const char* name, std::optional<std::int64_t>& value) { value = members_.maybe_count(name); }
  void operator()(const char* name, std::optional<Duration>& value) {
    const std::optional<double> number = members_.maybe_number(name);
    value = number ? std::optional(duration_of(*number)) : std::nullopt;
  }
  void operator()(const char* name, std::vector<int>& values) {
    for (const ReadJson& number : members_.list(name)) {
      if (number.is_number_unsigned()) values.push_back(number.get<int>());
    }
  }
  void or_none(const char* name, double& value) { value = members_.maybe_number(name).value_or(kNone); }

  template <typename Describe>
  void object(const char* name, const Describe& describe) {
    Reader inner(members_.object(name));
    describe(inner);
  }
  template <typename T, typename Describe>
  void object_if(const char* name, std::optional<T>& value, const Describe& describe) {
    if (members_.has(name)) object(name, [&](Reader& inner) { describe(inner, value.emplace()); });
  }
  template <typename T, typename Describe>
  void list(const char* name, std::vector<T>& values, const Describe& describe) {
    each_of(name, [&](Reader& inner) { describe(inner, values.emplace_back()); });
  }
  template <typename T, typename Describe>
  void by_rank(const char* name, const char* rank, std::map<int, T>& values, const Describe& describe) {
    each_of(name, [&](Reader& inner) {
      const std::int64_t number = inner.members_.count(rank);
      if (number >= 0 && number < kMostServers) describe(inner, values[static_cast<int>(number)]);
    });
  }

 private:
  static Duration duration_of(double value) { return from_seconds(std::clamp(value, 0.0, kMostSeconds)); }

  template <typename Describe>
  void each_of(const char* name, const Describe& describe) {
    for (const ReadJson& object : members_.list(name)) {
      if (!object.is_object()) continue;
      Reader inner(members_.of(object));
      describe(inner);
    }
  }

  const JsonMembers members_;
};

// In these, `in` is a Writer or a Reader, and the figures are const for the first.

constexpr auto kMachine = [](auto& in, auto& load) {
  in("seconds", load.seconds);
  in("cores", load.cores);
  in("core_quota", load.quota);
  in("workers", load.workers);
  in("own", load.own);
  in("others", load.others);
  in("steal", load.steal);
  in("throttled", load.throttled);
  in("waiting", load.waiting);
  in("load_average_before", load.load_before);
  in("load_average_after", load.load_after);
  in("mhz_before", load.mhz_before);
  in("mhz_after", load.mhz_after);
  in("governor", load.governor);
};

constexpr auto kServer = [](auto& in, auto& server) {
  each_server_figure([&](const ServerFigure& figure, auto member) {
    if (figure.key != nullptr) in(figure.key, server.*member);
  });
};

constexpr auto kWindow = [](auto& in, auto& window) {
  in("seconds", window.seconds);
  in("samples_per_second", window.samples_per_second);
  in("steps", window.steps);
};

constexpr auto kStraggler = [](auto& in, auto& straggler) {
  in("worker", straggler.worker);
  in("delay_ms_mean", straggler.delay_ms_mean);
  in("delay_ms_max", straggler.delay_ms_max);
  in("slowdown", straggler.slowdown);
};

constexpr auto kBin = [](auto& in, auto& bin) {
  in("staleness", bin.staleness);
  in("steps", bin.steps);
  in.or_none("train_loss", bin.loss);
  in.or_none("excess_train_loss", bin.excess_loss);
};

// Regression has no accuracy, and nothing else has an R2.
template <typename In, typename Report>
void describe_validation(In& in, Report& report) {
  std::optional<double> r2, accuracy, loss;
  if (!In::kReads && report.final_validation) {
    r2 = report.final_validation->r2;
    loss = report.final_validation->loss;
    if (!r2) accuracy = report.final_validation->accuracy;
  }
  in("final_validation_r2", r2);
  in("final_validation_accuracy", accuracy);
  in("final_validation_loss", loss);
  if constexpr (In::kReads) {
    if (loss) report.final_validation = {.accuracy = accuracy.value_or(kNone), .loss = *loss, .r2 = r2};
  }
}

template <typename In, typename Report>
void describe_report(In& in, Report& report) {
  in("samples_per_second", report.samples_per_second);
  in("final_test_accuracy", report.final_test_accuracy);
  in("final_test_loss", report.final_test_loss);
  in("final_test_auc", report.final_figures.auc);
  in("final_test_hr10", report.final_figures.hit_rate);
  in("final_test_ndcg10", report.final_figures.ndcg);
  in("final_test_r2", report.final_figures.r2);
  in("final_test_rmse", report.final_figures.rmse);
  in("test_labels", report.test_labels);
  describe_validation(in, report);
  in("first_train_loss", report.first_train_loss);
  in("final_train_loss", report.final_train_loss);
  in("seconds_to_target", report.seconds_to_target);
  in("samples_to_target", report.samples_to_target);
  in("seconds_to_target_resolution", report.seconds_to_target_resolution);
  in("training_seconds", report.training_seconds);
  in("used_samples", report.used_samples);
  in("goodput", report.goodput);
  in("lost_workers", report.lost_workers);
  in.object_if("steady_window", report.window, kWindow);
  in("total_steps", report.total_steps);
  in("total_samples", report.total_samples);
  in("step_ms_median", report.step_ms_median);
  in("step_ms_p95", report.step_ms_p95);
  in.object("step_split_ms", [&](auto& of_step) {
    auto& split = report.split_ms;
    of_step("step", split.step);
    of_step("data", split.data);
    of_step("forward", split.forward);
    of_step("backward", split.backward);
    of_step("straggle", split.straggle);
    of_step("exposed_wait", split.exposed_wait);
    of_step("optimizer", split.optimizer);
    of_step("other", split.other);
    of_step("communication", report.communication_ms);
    of_step("hidden_communication", report.hidden_communication_ms);
    of_step("codec", report.codec_ms);
    of_step("copy", report.copy_ms);
    of_step("launch", report.launch_ms);
  });
  if constexpr (!In::kReads) in("hidden_part", hidden_part(report));
  in.list("stragglers", report.stragglers, kStraggler);
  in.by_rank("servers", "server", report.servers, kServer);
  in("bytes_out_per_step", report.bytes_out_per_step);
  in("bytes_in_per_step", report.bytes_in_per_step);
  in.object("memory_bytes", [&](auto& of_memory) {
    of_memory("worker", report.memory.worker);
    of_memory("server", report.memory.server);
    of_memory("all", report.memory.all);
  });
  in.object_if("machine", report.machine, kMachine);
  in("staleness_mean", report.staleness_mean);
  in("staleness_p95", report.staleness_p95);
  in("staleness_max", report.staleness_max);
  in.list("staleness_histogram", report.staleness_bins, kBin);
  in("dropped", report.dropped);
  in("loss_scale", report.loss_scale);
  in("skipped_steps", report.skipped_steps);
}

}  // namespace

Json report_json(const RunReport& report) {
  Json json = Json::object();
  Writer writer(json);
  describe_report(writer, report);
  return json;
}

RunReport read_report(const JsonMembers& members) {
  for (const char* name : {"samples_per_second", "training_seconds", "total_steps", "step_split_ms"}) {
    members.require(name);
  }
  RunReport report;
  Reader reader(members);
  describe_report(reader, report);
  return report;
}

}  // namespace syncopate::experiments
