// Whole runs whose messages come late, twice, and in another order: nothing is lost, and nothing counts twice.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "tests/support/faulty_run.h"

namespace syncopate::faults {
namespace {

constexpr int kWorkers = 3;
constexpr int kSteps = 300;

Flags with(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

const Flags kPs{"--mode=ps", "--workers=3", "--servers=2"};
const Flags kRing{"--mode=allreduce", "--workers=3", "--collective=ring"};
const Flags kTables{"--model=ncf:8", "--dataset=zipf-ratings", "--table-rows=2000"};  // instead of the small model

const Mode kModes[] = {
    {"PsSync", with(kPs, {"--consistency=sync"})},
    {"PsSyncTcp", with(kPs, {"--consistency=sync", "--transport=tcp", "--connections=2"})},
    {"PsSyncReplicas", with(kPs, {"--consistency=sync", "--replicas=1"})},
    {"PsSyncTables", with(with(kPs, {"--consistency=sync"}), kTables)},
    {"PsAsync", kPs},
    {"PsAsyncTables", with(kPs, kTables)},
    {"Ring", kRing},
    {"RingElastic", with(kRing, {"--elastic"})},
    {"TreeSockets", {"--mode=allreduce", "--workers=3", "--collective=tree", "--transport=sockets"}}};

bool has_servers(const Mode& mode) { return std::string_view(mode.name).starts_with("Ps"); }
bool is_async(const Mode& mode) { return std::string_view(mode.name).starts_with("PsAsync"); }

Flags flags_of(const Mode& mode) {
  Flags flags = small_run(mode.flags, kSteps, kLongTimeoutSeconds);
  if (std::ranges::find(mode.flags, kTables[0]) != mode.flags.end()) {
    flags.erase(std::ranges::find_if(flags, [](const std::string& flag) { return flag.starts_with("--model="); }));
  }
  return flags;
}

// Everybody who sends data, from step 50 on.
std::string faults_of(const Mode& mode, const std::vector<std::string>& kinds) {
  std::vector<std::string> targets{"worker0", "worker1", "worker2"};
  if (has_servers(mode)) targets.insert(targets.end(), {"server0", "server1"});
  if (std::string_view(mode.name).ends_with("Replicas")) targets.insert(targets.end(), {"standby0", "standby1"});
  std::vector<std::string> faults;
  for (const std::string& kind : kinds) {
    for (const std::string& target : targets) faults.push_back(fmt::format("{}:{}@step50+700ms", kind, target));
  }
  return fmt::format("--fault={}", fmt::join(faults, ","));
}

// What servers and standbys say of themselves at their ends.
struct Served {
  std::vector<int> pushes;
  int dropped = 0;
};
Served served_in(const Program& program) {
  Served served;
  const std::regex pattern("served ([0-9]+) pushes, [0-9]+ of them late, in [0-9]+ updates; dropped ([0-9]+)");
  const std::filesystem::directory_iterator files(program.output() / "logs");
  for (const std::filesystem::path& log : std::set<std::filesystem::path>(begin(files), end(files))) {
    std::ifstream file(log);
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, pattern)) continue;
      served.pushes.push_back(std::stoi(match[1]));
      served.dropped += std::stoi(match[2]);
    }
  }
  return served;
}

// How many processes say in their logs that their links were impaired so.
int impaired(const Program& program, const std::string& kind) {
  std::string name = kind;
  for (char& letter : name) letter = static_cast<char>(std::toupper(letter));
  int count = 0;
  for (const auto& log : std::filesystem::directory_iterator(program.output() / "logs")) {
    count += testing_support::text_of(log.path()).find("links are impaired (" + name + ")") != std::string::npos;
  }
  return count;
}

class ImpairLinks : public testing::TestWithParam<Mode> {};

INSTANTIATE_TEST_SUITE_P(Of, ImpairLinks, testing::ValuesIn(kModes), kNameOfMode);

TEST_P(ImpairLinks, LoseNothingAndHaveNothingCountTwice) {
  const Mode& mode = GetParam();
  const Flags flags = flags_of(mode);
  Program undisturbed(flags);
  ASSERT_EQ(undisturbed.wait().exit_code, 0) << undisturbed.errors();
  const std::vector<int> pushes = served_in(undisturbed).pushes;
  EXPECT_EQ(pushes.empty(), !has_servers(mode));
  const std::vector<std::string> troubles[] = {{"duplicate"}, {"reorder"}, {"delay", "duplicate", "reorder"}};
  for (const std::vector<std::string>& kinds : troubles) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(kinds, ", ")));
    const Remains remains;
    Program program(with(flags, {faults_of(mode, kinds)}));
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    expect_orderly_end(program, end, remains);
    EXPECT_EQ(program.summary()["total_steps"], kWorkers * kSteps);
    for (const nlohmann::json& fault : program.summary()["faults"]) EXPECT_TRUE(fault["done"]) << fault;
    if (!is_async(mode)) {
      EXPECT_TRUE(program.weights() == undisturbed.weights());
    }
    const Served served = served_in(program);
    EXPECT_EQ(served.pushes, pushes) << "each is applied once";
    for (const std::string& kind : kinds) EXPECT_GE(impaired(program, kind), kWorkers) << kind;
    const bool has_duplicates = std::ranges::find(kinds, "duplicate") != kinds.end();
    EXPECT_EQ(served.dropped > 0, has_servers(mode) && has_duplicates) << served.dropped;
    EXPECT_EQ(program.summary()["rejected_connections"] > 0, has_duplicates)
        << program.summary()["rejected_connections"];
  }
}

}  // namespace
}  // namespace syncopate::faults
