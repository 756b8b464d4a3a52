#include "experiments/lab/report/summary_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "common/group_limits.h"
#include "experiments/lab/report/json_members.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kMostRepeats = 100;  // limit of --repeat
constexpr double kMostSeconds = 1e9;       // more would not fit a Duration

Duration seconds_of(double value) { return from_seconds(std::clamp(value, 0.0, kMostSeconds)); }

MachineLoad machine_of(const JsonMembers& members) {
  return {.seconds = members.number("seconds"),
          .cores = members.number("cores"),
          .quota = members.maybe_number("core_quota"),
          .workers = static_cast<int>(members.count("workers")),
          .own = members.maybe_number("own"),
          .others = members.maybe_number("others"),
          .steal = members.maybe_number("steal"),
          .throttled = members.maybe_number("throttled"),
          .waiting = members.maybe_number("waiting"),
          .load_before = members.maybe_number("load_average_before"),
          .load_after = members.maybe_number("load_average_after"),
          .mhz_before = members.maybe_number("mhz_before"),
          .mhz_after = members.maybe_number("mhz_after"),
          .governor = members.text("governor")};
}

void add_server(const JsonMembers& members, std::map<int, ServerFigures>& servers) {
  const std::int64_t rank = members.count("server");
  if (rank < 0 || rank >= kMostServers) return;
  servers[static_cast<int>(rank)] = {.pushes = members.count("pushes"),
                                     .busy = seconds_of(members.number("busy_seconds")),
                                     .serving = seconds_of(members.number("serving_seconds")),
                                     .bytes_in = members.count("bytes_in"),
                                     .bytes_out = members.count("bytes_out")};
  if (const auto wait = members.maybe_number("core_wait_seconds")) {
    servers[static_cast<int>(rank)].core_wait = seconds_of(*wait);
  }
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename T>
bool read_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_number(std::string_view text, std::optional<double>& value) {
  if (text.empty()) return true;
  return read_number(text, value.emplace());
}

// Unknown columns are ignored.
bool read_eval(const std::vector<std::string_view>& names, const std::vector<std::string_view>& cells,
               std::size_t& repeat, EvalRecord& eval) {
  std::optional<double> accuracy, validation_accuracy, validation_loss, validation_r2;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto read = [&](std::string_view name, auto& value) {
      return names[i] != name || read_number(cells[i], value);
    };
    if (!read("repeat", repeat) || !read("epoch", eval.epoch) || !read("step", eval.step) ||
        !read("samples_seen", eval.samples_seen) || !read("training_s", eval.training_seconds) ||
        !read("accuracy", accuracy) || !read("loss", eval.loss) || !read("auc", eval.figures.auc) ||
        !read("hr10", eval.figures.hit_rate) || !read("ndcg10", eval.figures.ndcg) ||
        !read("validation_accuracy", validation_accuracy) || !read("validation_loss", validation_loss) ||
        !read("train_loss", eval.train_loss) || !read("train_accuracy", eval.train_accuracy) ||
        !read("r2", eval.figures.r2) || !read("rmse", eval.figures.rmse) || !read("validation_r2", validation_r2)) {
      return false;
    }
  }
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  eval.accuracy = accuracy.value_or(kNone);
  if ((validation_accuracy || validation_r2) && validation_loss) {
    eval.validation = ValidationFigures{
        .accuracy = validation_accuracy.value_or(kNone), .loss = *validation_loss, .r2 = validation_r2};
  }
  return true;
}

}  // namespace

RunReport read_report(const JsonMembers& members) {
  for (const char* name : {"samples_per_second", "training_seconds", "total_steps", "step_split_ms"}) {
    members.require(name);
  }
  RunReport report;
  report.samples_per_second = members.maybe_number("samples_per_second");
  report.training_seconds = members.number("training_seconds");
  report.total_steps = members.count("total_steps");
  report.total_samples = members.count("total_samples");
  report.used_samples = members.count("used_samples");
  for (const ReadJson& rank : members.list("lost_workers")) {
    if (rank.is_number_unsigned()) report.lost_workers.push_back(rank.get<int>());
  }
  if (members.has("steady_window")) {
    const JsonMembers window = members.object("steady_window");
    report.window = SteadyWindow{.seconds = window.number("seconds"),
                                 .samples_per_second = window.number("samples_per_second"),
                                 .steps = window.count("steps")};
  }
  report.step_ms_median = members.number("step_ms_median");
  report.step_ms_p95 = members.number("step_ms_p95");
  const JsonMembers split = members.object("step_split_ms");
  report.split_ms = {.step = split.number("step"),
                     .data = split.number("data"),
                     .forward = split.number("forward"),
                     .backward = split.number("backward"),
                     .straggle = split.number("straggle"),
                     .exposed_wait = split.number("exposed_wait"),
                     .optimizer = split.number("optimizer"),
                     .other = split.number("other")};
  report.communication_ms = split.number("communication");
  report.hidden_communication_ms = split.number("hidden_communication");
  report.codec_ms = split.number("codec");
  report.copy_ms = split.number("copy");
  report.launch_ms = split.number("launch");
  report.bytes_out_per_step = members.number("bytes_out_per_step");
  report.bytes_in_per_step = members.number("bytes_in_per_step");
  for (const ReadJson& server : members.list("servers")) {
    if (server.is_object()) add_server(members.of(server), report.servers);
  }
  const JsonMembers memory = members.object("memory_bytes");
  report.memory = {.worker = memory.count("worker"), .server = memory.count("server"), .all = memory.count("all")};
  if (members.has("machine")) report.machine = machine_of(members.object("machine"));
  report.staleness_mean = members.number("staleness_mean");
  report.staleness_p95 = members.number("staleness_p95");
  report.staleness_max = members.count("staleness_max");
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const ReadJson& bin : members.list("staleness_histogram")) {
    if (!bin.is_object()) continue;
    const JsonMembers of_bin = members.of(bin);
    report.staleness_bins.push_back({.staleness = of_bin.count("staleness"),
                                     .steps = of_bin.count("steps"),
                                     .loss = of_bin.maybe_number("train_loss").value_or(kNone),
                                     .excess_loss = of_bin.maybe_number("excess_train_loss").value_or(kNone)});
  }
  report.dropped = members.number("dropped");
  report.first_train_loss = members.maybe_number("first_train_loss");
  report.final_train_loss = members.maybe_number("final_train_loss");
  report.final_test_accuracy = members.maybe_number("final_test_accuracy");
  report.final_test_loss = members.maybe_number("final_test_loss");
  report.final_figures = {.auc = members.maybe_number("final_test_auc"),
                          .hit_rate = members.maybe_number("final_test_hr10"),
                          .ndcg = members.maybe_number("final_test_ndcg10"),
                          .r2 = members.maybe_number("final_test_r2"),
                          .rmse = members.maybe_number("final_test_rmse")};
  report.test_labels = members.count("test_labels");
  if (members.has("final_validation_loss")) {
    report.final_validation =
        ValidationFigures{.accuracy = members.maybe_number("final_validation_accuracy").value_or(kNone),
                          .loss = members.number("final_validation_loss"),
                          .r2 = members.maybe_number("final_validation_r2")};
  }
  report.seconds_to_target = members.maybe_number("seconds_to_target");
  report.samples_to_target = members.maybe_count("samples_to_target");
  report.seconds_to_target_resolution = members.maybe_number("seconds_to_target_resolution");
  return report;
}

Result<RunSummary> read_summary(std::string_view json) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ReadJson whole, json_object_in(json));
  std::string error;
  const JsonMembers members(whole, error);
  members.require("each_repeat");
  RunSummary summary{.outcome = members.text("outcome"),
                     .events = {},
                     .parameters = members.count("parameters"),
                     .steps_per_epoch = members.count("steps_per_epoch"),
                     .reports = {},
                     .seeds = {}};
  if (members.has("simulated")) {
    const JsonMembers simulated = members.object("simulated");
    summary.simulated_network = simulated.text("network");
    summary.simulated_compute = simulated.text("compute");
  }
  if (members.has("resumed_from")) {
    const JsonMembers resumed = members.object("resumed_from");
    summary.resumed_at = resumed.count("step");
    summary.resumed_seconds = resumed.maybe_number("seconds");
    summary.counts_from_resume = !resumed.has("samples");
  }
  if (members.has("not_finite")) summary.not_finite = members.object("not_finite").object("first").text("text");
  const ReadJson& repeats = members.list("each_repeat");
  if (repeats.size() > kMostRepeats)
    return Status::data_loss(fmt::format("each_repeat has more than {} entries", kMostRepeats));
  for (const ReadJson& repeat : repeats) {
    if (!repeat.is_object()) return Status::data_loss("each_repeat must be a list of objects");
    RunReport& report = summary.reports.emplace_back(read_report(JsonMembers(repeat, error)));
    if (!summary.counts_from_resume) continue;
    report.seconds_to_target.reset();
    report.samples_to_target.reset();
  }
  for (const ReadJson& event : members.list("events")) {
    if (!event.is_string()) return Status::data_loss("events must be a list of texts");
    summary.events.push_back(event.get<std::string>());
  }
  for (const ReadJson& seed : members.list("seeds")) {
    if (!seed.is_number_unsigned()) return Status::data_loss("seeds must be a list of whole numbers");
    summary.seeds.push_back(seed.get<std::uint64_t>());
  }
  if (!error.empty()) return Status::data_loss(error);
  return summary;
}

Result<std::vector<std::vector<EvalRecord>>> read_evals(std::string_view csv, std::size_t repeats) {
  const std::size_t end_of_header = csv.find('\n');
  const std::vector<std::string_view> names = split(csv.substr(0, end_of_header), ',');
  for (const char* name : {"repeat", "epoch", "step", "samples_seen", "training_s", "accuracy", "loss"}) {
    if (std::ranges::find(names, name) == names.end()) return Status::data_loss(fmt::format("has no column {}", name));
  }
  std::vector<std::vector<EvalRecord>> evals(repeats);
  csv.remove_prefix(std::min(end_of_header, csv.size() - 1) + 1);
  for (int number = 2; !csv.empty(); ++number) {
    const std::size_t end = csv.find('\n');
    const std::vector<std::string_view> cells = split(csv.substr(0, end), ',');
    std::size_t repeat = 0;
    EvalRecord eval;
    const bool is_row = end != std::string_view::npos && cells.size() == names.size() &&
                        read_eval(names, cells, repeat, eval) && repeat < kMostRepeats;
    if (!is_row) return Status::data_loss(fmt::format("line {} is no evaluation, or not whole", number));
    if (repeat >= evals.size()) evals.resize(repeat + 1);
    evals[repeat].push_back(eval);
    csv.remove_prefix(end + 1);
  }
  return evals;
}

Environment environment_of(const JsonMembers& members) {
  return {.host = members.text("host"),
          .kernel = members.text("kernel"),
          .cpu_model = members.text("cpu_model"),
          .cores = static_cast<int>(members.count("cores")),
          .memory_gib = members.number("memory_gib"),
          .compiler = members.text("compiler"),
          .build = members.text("build"),
          .vector_set = members.text("vector_set"),
          .sanitizers = members.text("sanitizers"),
          .commit = members.text("commit")};
}

Result<Environment> read_environment(std::string_view json) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ReadJson whole, json_object_in(json));
  std::string error;
  const JsonMembers members(whole, error);
  for (const char* name : {"host", "cores"}) members.require(name);
  const Environment environment = environment_of(members);
  if (!error.empty()) return Status::data_loss(error);
  return environment;
}

}  // namespace syncopate::experiments
