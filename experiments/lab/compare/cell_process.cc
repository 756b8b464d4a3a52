#include "experiments/lab/compare/cell_process.h"

#include <cstdio>
#include <string_view>

#include "common/os/regular_file.h"
#include "common/os/signal_actions.h"
#include "common/text/log.h"
#include "experiments/cluster/starter.h"
#include "experiments/config/toml.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {
namespace {

constexpr std::string_view kCell = "--cell";
constexpr std::uint64_t kMostCellBytes = 1 << 20;

}  // namespace

std::vector<std::string> cell_command(const std::string& program, const std::string& settings,
                                      const std::string& output) {
  return {program, std::string(kCell), settings, output};
}

bool is_cell_command_line(int argc, const char* const* argv) { return argc == 4 && argv[1] == kCell; }

ExitCode cell_main(int, const char* const* argv) {
  die_with_parent();
  let_writes_fail();
  start_log("run_experiment", "%n: %v");
  const auto fail = [](const Status& status) {
    write_out(stderr, status.message() + "\n");
    return exit_code_of(status);
  };
  const Result<std::string> text = read_regular_file(argv[2], kMostCellBytes);
  if (!text.ok()) return fail(text.status());
  Result<ResolvedRun> config = from_toml_text(*text);
  if (!config.ok()) return fail(config.status());
  config->output = argv[3];
  SoloTimes solo;
  Interrupts interrupts;
  Console quiet(true);
  const JobResult result = run_job(*config, Survey(), solo, interrupts, quiet);
  if (!result.verdict.empty()) write_out(stderr, result.verdict + "\n");
  return result.exit;
}

}  // namespace syncopate::experiments
