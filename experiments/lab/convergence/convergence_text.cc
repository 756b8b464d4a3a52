#include "experiments/lab/convergence/convergence_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {

std::vector<std::vector<std::string>> convergence_rows(const ReproducedConvergence& reproduced) {
  const ConvergenceTable& table = reproduced.table;
  std::vector<std::vector<std::string>> rows = {
      {"setting", table.unit, "in kind", "ours, accuracy %", "of seeds", "staleness", "ours in kind", "verdict"}};
  for (std::size_t i = 0; i < table.settings.size(); ++i) {
    const ConvergenceSetting& setting = table.settings[i];
    std::vector<std::string> figures;
    std::vector<Convergence> kinds;
    for (const PublishedConvergence& published : setting.published) {
      figures.push_back(published.text);
      kinds.push_back(published.kind);
    }
    const ConvergenceVerdict verdict = verdict_of(reproduced, i);
    rows.push_back({setting.name, fmt::format("{}", fmt::join(figures, ", ")), kinds_text(kinds),
                    fmt::format("{:.1f}", 100 * verdict.mean),
                    fmt::format("{:.1f} to {:.1f}", 100 * verdict.least, 100 * verdict.most),
                    fmt::format("{:.1f}", reproduced.measured[i].staleness), kinds_text(verdict.kinds),
                    text_of(verdict)});
  }
  return rows;
}

std::vector<std::string> convergence_facts(const ConvergenceTable& table) {
  std::vector<std::string> facts = {"Published: " + table.what + ".", "Source: " + table.source + ".",
                                    "Ours: " + table.ours + "."};
  if (!table.left_out.empty()) facts.push_back("Left out: " + table.left_out + ".");
  return facts;
}

std::string convergence_count(const ReproducedConvergence& reproduced) {
  std::size_t agreeing = 0;
  const std::size_t settings = reproduced.table.settings.size();
  for (std::size_t i = 0; i < settings; ++i) agreeing += verdict_of(reproduced, i).reproduced() ? 1 : 0;
  return fmt::format("{} of {} settings reproduced, each with all of {} seeds.", agreeing, settings,
                     reproduced.measured.front().accuracies.size());
}

std::string convergence_text(const ReproducedConvergence& reproduced) {
  std::string text = reproduced.table.name + "\n";
  for (const std::string& fact : convergence_facts(reproduced.table)) text += fact + "\n";
  return text + "\n" + text_table(convergence_rows(reproduced), {"ours, accuracy %", "ours in kind"}) + "\n" +
         convergence_count(reproduced) + "\n";
}

std::string convergence_command(const ConvergenceSetting& setting, std::size_t seeds) {
  return fmt::format("./run_experiment {} --repeat={}", fmt::join(setting.flags, " "), seeds);
}

}  // namespace syncopate::experiments
