#include "experiments/lab/demo/demo_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "common/clock.h"
#include "common/os/regular_file.h"
#include "common/os/whole_file.h"
#include "experiments/cluster/host/build_facts.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/lab/demo/demo_answers.h"
#include "experiments/lab/demo/demo_charts.h"
#include "experiments/lab/demo/demo_page.h"
#include "experiments/lab/demo/demo_text.h"
#include "experiments/lab/report/plot.h"
#include "experiments/lab/report/results_folder.h"
#include "experiments/lab/why/explained_run.h"
#include "experiments/lab/why/why_text.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using Document = DemoFigures::Document;

constexpr std::uint64_t kMostDocumentBytes = 256 << 20;
constexpr const char* kRecord = "/demo.json";

// A run whose own fault has ended it has shown what it was to show.
bool is_lost_on_purpose(const DemoRun& run, ExitCode exit) {
  const bool has_fault = std::ranges::any_of(run.words, [](const std::string& word) {
    return word.starts_with("--fault=") || word.starts_with("--vary=fault=");
  });
  return has_fault && (exit == ExitCode::kProcessLost || exit == ExitCode::kTimeout);
}

Result<Document> read_document(const std::string& path) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, read_regular_file(path, kMostDocumentBytes));
  Document document = Document::parse(text, nullptr, false);
  if (document.is_discarded()) return Status::data_loss(fmt::format("{}: is no JSON", path));
  return document;
}

std::string why_path(const std::string& folder, const DemoWhy& why) {
  return fmt::format("{}/why-{}.json", folder, why.name);
}

// Returns the folder of the run that `why` is to explain: of a row, that of its first round.
Result<std::string> folder_of(const DemoWhy& why, const std::string& folder) {
  const std::string run = fmt::format("{}/{}", folder, why.run);
  if (why.row.empty()) return run;
  SYNCOPATE_ASSIGN_OR_RETURN(const Document comparison, read_document(run + "/comparison.json"));
  const DemoFigures figures({{why.run, comparison}}, {});
  SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue of_row,
                             evaluate(fmt::format("[{}/{}/folder]", why.run, why.row), figures));
  if (of_row.text) return *of_row.text;
  return Status::invalid_argument(fmt::format("why.{}: {} has no row {}", why.name, why.run, why.row));
}

Status explain_runs(const Demo& demo, const std::string& folder) {
  for (const DemoWhy& why : demo.whys) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string of_run, folder_of(why, folder));
    SYNCOPATE_ASSIGN_OR_RETURN(const ExplainedRun explained, explain_run(of_run));
    SYNCOPATE_RETURN_IF_ERROR(write_whole_file(why_path(folder, why), why_json(explained)));
  }
  return {};
}

Result<DemoOutcome> outcome_of(const Demo& demo, const DemoFigures& figures) {
  DemoOutcome outcome;
  SYNCOPATE_ASSIGN_OR_RETURN(outcome.charts, demo_charts(demo, figures));
  SYNCOPATE_ASSIGN_OR_RETURN(outcome.sentences, answer_of(demo, figures));
  for (const DemoExercise& exercise : demo.exercises) {
    SYNCOPATE_ASSIGN_OR_RETURN(std::string text, exercise_text(exercise, figures));
    outcome.exercises.push_back(std::move(text));
  }
  const Environment machine = this_environment();
  outcome.machine = fmt::format("On {} ({}, {} cores), {}; {} ({})", machine.host, machine.cpu_model, machine.cores,
                                calendar_text(calendar_stamp()), program_version(), source_fingerprint());
  return outcome;
}

// Returns the figures that the demonstration defines, for programs.
std::string record_of(const Demo& demo, const DemoFigures& figures, const DemoOutcome& outcome) {
  Document defined = Document::object();
  for (const auto& [name, formula] : demo.figures) {
    const Result<FigureValue> value = figures.named(name);
    if (!value.ok() || !value->has_value()) {
      defined[name] = nullptr;
    } else {
      defined[name] = value->number ? Document(*value->number) : Document(*value->text);
    }
  }
  const Document record = {{"demo", demo.name},
                           {"question", demo.question},
                           {"figures", defined},
                           {"answer", outcome.sentences},
                           {"exercises", outcome.exercises}};
  return record.dump(1, ' ', false, Document::error_handler_t::replace) + "\n";
}

Status show_and_write(const Demo& demo, const DemoPlace& place, Console& console) {
  SYNCOPATE_RETURN_IF_ERROR(explain_runs(demo, place.folder));
  SYNCOPATE_ASSIGN_OR_RETURN(const DemoFigures figures, read_demo_figures(demo, place.folder));
  SYNCOPATE_ASSIGN_OR_RETURN(const DemoOutcome outcome, outcome_of(demo, figures));
  console.draw(plots_of(outcome.charts, terminal_plot_style()) + "\n");
  console.say(answer_text(demo, outcome.sentences, outcome.exercises, place.columns));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(place.folder + kRecord, record_of(demo, figures, outcome)));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(place.folder + "/demo.html", demo_html(demo, outcome)));
  console.say(fmt::format("the page: {}/demo.html", place.folder));
  return {};
}

// The name may have a number behind it, as NewFolder gives.
bool is_folder_of(const Demo& demo, std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  const bool is_numbered = end != name.npos && end + 1 < name.size() && name[end] == '-';
  const std::string usual = demo_folder_name(demo, "");
  return name.ends_with(usual) || (is_numbered && name.substr(0, end).ends_with(usual));
}

}  // namespace

ExitCode run_demo(const Demo& demo, const DemoPlace& place, const DemoRunner& runner, Console& console) {
  const auto fail = [&](const Status& status) {
    console.warn("run_experiment: " + status.message());
    return exit_code_of(status);
  };
  const Result<ResultsFolder> taken =
      ResultsFolder::take(place.folder, [&] { return check_holds_nothing(place.folder); });
  if (!taken.ok()) return fail(taken.status());
  for (const DemoRun& run : demo.runs) {
    std::vector<std::string> words = run.words;
    words.insert(words.end(), place.more.begin(), place.more.end());
    words.push_back(fmt::format("--output={}/{}", place.folder, run.name));
    if (!compares(run)) console.say_part(run.name + ": ");
    const ExitCode exit = runner(words);
    if (exit != ExitCode::kSuccess && !is_lost_on_purpose(run, exit)) return exit;
  }
  if (const Status shown = show_and_write(demo, place, console); !shown.ok()) return fail(shown);
  return ExitCode::kSuccess;
}

Result<DemoFigures> read_demo_figures(const Demo& demo, const std::string& folder) {
  std::map<std::string, Document> documents;
  for (const DemoRun& run : demo.runs) {
    const std::string file = compares(run) ? "comparison.json" : "summary.json";
    SYNCOPATE_ASSIGN_OR_RETURN(documents[run.name], read_document(fmt::format("{}/{}/{}", folder, run.name, file)));
  }
  for (const DemoWhy& why : demo.whys) {
    SYNCOPATE_ASSIGN_OR_RETURN(documents[why.name], read_document(why_path(folder, why)));
  }
  return DemoFigures(std::move(documents), demo.figures);
}

std::string demo_folder_name(const Demo& demo, const std::string& stamp) {
  return fmt::format("{}-demo-{}", stamp, demo.name);
}

Result<std::string> newest_demo_folder(const Demo& demo, const std::string& results) {
  std::string newest;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(results, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!is_folder_of(demo, name) || !fs::exists(entry.path().string() + kRecord, ignored)) continue;
    newest = std::max(newest, name);
  }
  if (!newest.empty()) return fmt::format("{}/{}", results, newest);
  return Status::invalid_argument(
      fmt::format("demo {0}: has not been run here ({1}/ has no results of it); run_experiment demo {0} does that, and "
                  "--output=DIR names a folder elsewhere",
                  demo.name, results));
}

}  // namespace syncopate::experiments
