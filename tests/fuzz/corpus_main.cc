// fuzz_tests: each harness as a test, fuzz_corpus.NAME. It runs what is kept in corpus/NAME and, drawn from a fixed
// seed, mutations of it. The input of a run that ends the program is left as crash-NAME in the working directory.
#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/text/log.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/mutation.h"

namespace syncopate::fuzz {
namespace {

using Contents = std::vector<std::uint8_t>;

constexpr int kMutations = 2000;
// Fewer where a harness is slow: the suite must stay quick.
constexpr auto kLongest = std::chrono::milliseconds(500);
constexpr std::uint64_t kSeed = 20261121;

// What runs now, for the handler below.
const Contents* g_input = nullptr;
char g_crash_file[128];

// Only calls that are safe in a handler.
void leave_input(int signal) {
  const int file = open(g_crash_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file >= 0 && g_input != nullptr) (void)!write(file, g_input->data(), g_input->size());
  constexpr std::string_view kNote = "the input is left in ";
  (void)!write(STDERR_FILENO, kNote.data(), kNote.size());
  (void)!write(STDERR_FILENO, g_crash_file, std::strlen(g_crash_file));
  (void)!write(STDERR_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Sorted by name, so that mutations are the same everywhere.
std::vector<Contents> corpus_of(const std::string& name) {
  std::vector<std::string> paths;
  std::error_code ignored;  // there may be none yet
  for (const auto& entry :
       std::filesystem::directory_iterator(SYNCOPATE_SOURCE_DIR "/tests/fuzz/corpus/" + name, ignored)) {
    paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  std::vector<Contents> inputs;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

class CorpusTest : public testing::Test {
 public:
  explicit CorpusTest(const Harness& harness) : harness_(harness) {}

  void TestBody() override {
    const std::vector<Contents> corpus = corpus_of(harness_.name);
    EXPECT_FALSE(corpus.empty()) << "tests/fuzz/corpus/" << harness_.name << " holds nothing: see tests/fuzz/README.md";
    run({});
    for (const Contents& input : corpus) run(input);
    if (corpus.empty()) return;
    Random random(kSeed);
    const auto deadline = std::chrono::steady_clock::now() + kLongest;
    for (int i = 0; i < kMutations && std::chrono::steady_clock::now() < deadline; ++i) {
      run(mutated(corpus[random.below(corpus.size())], corpus[random.below(corpus.size())], random));
    }
  }

 private:
  void run(const Contents& input) {
    fmt::format_to_n(g_crash_file, sizeof(g_crash_file) - 1, "crash-{}", harness_.name);
    g_input = &input;
    harness_.run(input);
    g_input = nullptr;
  }

  const Harness& harness_;
};

}  // namespace
}  // namespace syncopate::fuzz

int main(int argc, char** argv) {
  using namespace syncopate::fuzz;
  testing::InitGoogleTest(&argc, argv);
  syncopate::silence_log();
  google::protobuf::SetLogHandler(nullptr);
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, leave_input);
  for (const Harness* harness : harnesses()) {
    testing::RegisterTest("fuzz_corpus", harness->name, nullptr, nullptr, __FILE__, __LINE__,
                          [harness]() -> testing::Test* { return new CorpusTest(*harness); });
  }
  return RUN_ALL_TESTS();
}
