// Pages in a real browser: what is drawn, what switches, sorts and saves do, and that nothing is complained of.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "experiments/lab/report/comparison_files.h"
#include "experiments/lab/report/html_page.h"
#include "experiments/lab/report/html_text.h"
#include "tests/experiments/lab/report/sample_comparison.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_support::text_of;

bool has_chromium() { return std::system("command -v chromium >/dev/null 2>&1") == 0; }

// What a reader would do, and what comes of it, as JSON in the page: marks by chart, the axes of views, tooltips by
// mouse and by keys, files, and the order of the table.
constexpr const char* kReader = R"script(<script>
(async () => {
  const outcome = {charts: [], saved: []};
  try {
    const frames = () => new Promise(done => setTimeout(done, 50));
    const saved = [];
    URL.createObjectURL = blob => { saved.push({blob}); return 'about:blank'; };
    window.Blob = class { constructor(parts, {type}) { this.text = parts.join(''), this.type = type; } };
    HTMLCanvasElement.prototype.toBlob = function (use, type) { use({type, text: atob(this.toDataURL(type).split(',')[1])}); };
    HTMLAnchorElement.prototype.click = function () { saved[saved.length - 1].name = this.download; };
    await frames();
    outcome.width = innerWidth;
    outcome.overflow = document.documentElement.scrollWidth - innerWidth;
    for (const figure of document.querySelectorAll('figure.chart')) {
      const canvas = figure.querySelector('canvas'), chart = () => Chart.getChart(canvas);
      const button = text => [...figure.querySelectorAll('button')].find(one => one.textContent.trim().endsWith(text));
      const labels = () => [...figure.querySelectorAll('.switches [aria-pressed]')].map(one => `${one.textContent}:${one.getAttribute('aria-pressed')}`);
      const seen = {kind: JSON.parse(figure.querySelector('script').textContent).kind, switches: labels()};
      const metas = chart().getSortedVisibleDatasetMetas();
      seen.marks = metas.map(meta => meta.data.length);
      const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      seen.painted = pixels.filter((value, i) => i % 4 === 3 && value > 0).length;
      const box = canvas.getBoundingClientRect(), mark = metas[0].data[0];
      canvas.dispatchEvent(new MouseEvent('mousemove', {clientX: box.left + mark.getCenterPoint().x, clientY: box.top + mark.getCenterPoint().y, bubbles: true}));
      await frames();
      seen.tooltip = (chart().tooltip.body ?? []).flatMap(part => part.lines);
      canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}));
      canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
      canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
      seen.heard = figure.querySelector('[aria-live]').textContent;
      if (button('steps')) {
        seen.before = chart().options.scales.x.title.text;
        button('steps').click();
        seen.after = chart().options.scales.x.title.text;
      }
      if (button('log scale')) {
        button('log scale').click();
        seen.logarithmic = chart().options.scales.y.type;
        button('log scale').click();
      }
      const list = figure.querySelector('select'), lines = () => chart().data.datasets.map(one => one.data.map(({x, y}) => [x, y]));
      if (list) {
        seen.parts = [list.value, ...[...list.options].map(one => one.text)];
        seen.lines = [lines()];
        list.value = list.options[0].text;
        list.dispatchEvent(new Event('change'));
        seen.lines.push(lines());
        seen.kept = chart().options.scales.x.title.text;
      }
      const legend = figure.querySelector('.switches:not(:has(.view)) [aria-pressed]');
      if (legend) {
        legend.click();
        seen.hidden = metas.length - chart().getSortedVisibleDatasetMetas().length;
        seen.pressed = labels();
      }
      button('PNG').click();
      button('CSV').click();
      outcome.charts.push(seen);
    }
    document.querySelectorAll('.wide + .tools button').forEach(button => button.click());
    const table = document.querySelector('.wide table'), order = () => [...table.tBodies[0].rows].map(row => row.cells[1].textContent);
    const heading = table.tHead.rows[0].cells[1];
    outcome.orders = [order()];
    for (let i = 0; i < 2; ++i) {
      heading.querySelector('button').click();
      outcome.orders.push([heading.getAttribute('aria-sort'), ...order()]);
    }
    const bytesAt = (text, at) => [0, 1, 2, 3].reduce((sum, i) => 256 * sum + text.charCodeAt(at + i), 0);
    for (const {blob, name} of saved) {
      const isPng = blob.type === 'image/png' && blob.text.startsWith('\x89PNG');
      outcome.saved.push(isPng ? {name, width: bytesAt(blob.text, 16), height: bytesAt(blob.text, 20)} : {name, text: blob.text});
    }
    outcome.done = true;
  } catch (error) { outcome.error = String(error.stack); }
  const pre = document.createElement('pre');
  pre.id = 'outcome';
  pre.textContent = 'OUTCOME ' + JSON.stringify(outcome).replaceAll('&', '\\u0026').replaceAll('<', '\\u003c').replaceAll('>', '\\u003e') + ' END';
  document.body.append(pre);
})();
</script>)script";

// A browser without a screen shows no frames unless it has to; here they come by a clock, which is virtual: it goes on
// when there is nothing to do, so that nobody waits, and nothing may be awaited but that clock.
constexpr const char* kFrames = "<script>window.requestAnimationFrame = show => setTimeout(show, 1);</script>";

// The page with a reader in it.
std::string read_page(std::string page) {
  page.insert(page.rfind("</body>"), kReader);
  return page.insert(page.find("<title>"), kFrames);
}

struct Visit {
  nlohmann::json outcome;
  std::string log;  // what the browser has to complain of
};

Visit visit(const std::string& page) {
  const testing_support::TemporaryFolder folder;
  const std::string file = folder.path() / "page.html", dom = folder.path() / "dom", log = folder.path() / "log";
  std::ofstream(file) << read_page(page);
  const std::string command = fmt::format(
      "HOME='{0}' timeout --kill-after=5 120 chromium --headless --no-sandbox --disable-gpu --no-first-run "
      "--user-data-dir='{0}/profile' --window-size=1280,1000 --virtual-time-budget=60000 --enable-logging=stderr "
      "--dump-dom 'file://{1}' >'{2}' 2>'{3}'",
      folder.path().string(), file, dom, log);
  EXPECT_EQ(std::system(command.c_str()), 0) << text_of(log);
  const std::string shown = text_of(dom);
  const std::size_t begin = shown.find(">OUTCOME {"), end = shown.find("} END<");
  Visit visit;
  for (const std::string& line : testing_support::lines_of(text_of(log))) {
    if (line.find("CONSOLE") != std::string::npos) visit.log += line + "\n";
  }
  if (begin == std::string::npos || end == std::string::npos) {
    ADD_FAILURE() << "the page did not come to its end: " << visit.log << shown.substr(0, 2000);
    return visit;
  }
  visit.outcome = nlohmann::json::parse(shown.substr(begin + 9, end + 1 - begin - 9), nullptr, false);
  return visit;
}

const std::string kHostile = "</script><script>document.title = 'broken'</script>";

std::string sample_page() {
  const Chart lines{.title = "Loss " + kHostile,
                    .x = {.label = "seconds", .from_zero = true},
                    .y = {.label = "loss"},
                    .series = {{.name = "test", .points = {{1, 2, "", 1, 3}, {2, 0.5}, {3, 0.01}}, .colour = 1},
                               {.name = "least", .points = {{.y = 0.02}}, .is_level = true, .colour = 2}},
                    .view = "time",
                    .others = {{.name = "steps",
                                .x = {.label = "steps of all"},
                                .series = {{.name = "test", .points = {{100, 2}, {200, 0.5}, {300, 0.01}}}}}}};
  const IntervalChart intervals{
      .title = "Ratios",
      .axis = "ratio",
      .rows = {{.name = "local", .value = 1}, {.name = "ps", .value = 0.5, .low = 0.4, .high = 0.6, .colour = 1}}};
  const BarChart bars{
      .title = "Timeline",
      .axis = {.label = "ms"},
      .rows = {"worker 0", "worker 1"},
      .series = {{.name = "forward", .bars = {{"worker 0", 0, 1}, {"worker 0", 2, 3}, {"worker 1", 0, 2}}},
                 {.name = "wait", .bars = {{"worker 0", 1, 2, "1 ms"}}, .colour = 1}}};
  return html_page(
      "A page",
      html_charts({lines, intervals, bars}) +
          html_table(
              {{"mode", "samples/s"}, {kHostile, "9,934 ± 5"}, {"b", "120 ± 1"}, {"c, \"d\"", "-"}, {"=e()", "86,519"}},
              "Speed, of all"));
}

TEST(PageInBrowser, DrawsSwitchesSortsAndSavesWithoutAComplaint) {
  if (!has_chromium()) GTEST_SKIP() << "needs chromium: apt-get install chromium";
  const auto [outcome, log] = visit(sample_page());
  EXPECT_EQ(log, "");
  ASSERT_TRUE(outcome.value("done", false)) << outcome.dump(1);
  EXPECT_LE(outcome["overflow"], 0);
  ASSERT_EQ(outcome["charts"].size(), 3);

  const nlohmann::json &lines = outcome["charts"][0], &intervals = outcome["charts"][1], &bars = outcome["charts"][2];
  EXPECT_EQ(lines["marks"], (std::vector{3, 2}));
  EXPECT_EQ(intervals["marks"], (std::vector{2}));
  EXPECT_EQ(bars["marks"], (std::vector{3, 1}));
  for (const nlohmann::json& chart : outcome["charts"]) EXPECT_GT(chart["painted"], 1000) << chart.dump();

  EXPECT_EQ(lines["tooltip"], (std::vector<std::string>{"test", "loss: 2 [1, 3]", "seconds: 1"}));
  EXPECT_EQ(lines["heard"], "test, loss: 0.5, seconds: 2");
  EXPECT_EQ(intervals["tooltip"], (std::vector<std::string>{"local: 1"}));
  EXPECT_EQ(intervals["heard"], "ps: 0.5 [0.4, 0.6]");
  EXPECT_EQ(bars["tooltip"], (std::vector<std::string>{"worker 0, forward: 1", "ms"}));
  EXPECT_EQ(bars["heard"], "worker 0, forward: 1, 2 to 3: ms");

  EXPECT_EQ(lines["before"], "seconds");
  EXPECT_EQ(lines["after"], "steps of all");
  EXPECT_EQ(lines["logarithmic"], "logarithmic");
  EXPECT_EQ(bars["switches"], (std::vector<std::string>{"■ forward:true", "■ wait:true"}));
  EXPECT_EQ(bars["hidden"], 1);
  EXPECT_EQ(bars["pressed"], (std::vector<std::string>{"■ forward:false", "■ wait:true"}));

  EXPECT_EQ(outcome["orders"], nlohmann::json::parse(R"([["9,934 ± 5", "120 ± 1", "-", "86,519"],
      ["ascending", "120 ± 1", "9,934 ± 5", "86,519", "-"], ["descending", "86,519", "9,934 ± 5", "120 ± 1", "-"]])"));

  std::map<std::string, nlohmann::json> saved;
  for (const nlohmann::json& file : outcome["saved"]) saved[file["name"]] = file;
  ASSERT_EQ(saved.size(), 7) << outcome["saved"].dump(1);
  EXPECT_GT(saved.at("ratios.png")["width"], 400);
  EXPECT_GT(saved.at("timeline.png")["height"], 100);
  EXPECT_EQ(saved.at("ratios.csv")["text"], "name,ratio,low,high\nlocal,1,,\nps,0.5,0.4,0.6\n");
  EXPECT_THAT(saved.at("timeline.csv")["text"].get<std::string>(), HasSubstr("worker 0,wait,1,2,1\n"));
  EXPECT_EQ(saved.at("speed-of-all.csv")["text"],
            "mode,samples/s\n" + kHostile + ",\"9,934 ± 5\"\nb,120 ± 1\n\"c, \"\"d\"\"\",-\n'=e(),\"86,519\"\n");
}

// Two modes with eight numbers of workers, whose loss falls to one over that number.
std::string curves_page() {
  ComparisonReport report = sample_comparison({});
  report.varied = {"workers"};
  for (int workers = 1; workers <= 8; ++workers) {
    for (const char* mode : {"allreduce", "ps:sync"}) {
      ComparedRow row = sample_row(mode, {100.0 * workers});
      row.values = {{"workers", std::to_string(workers)}};
      row.label += fmt::format(" workers={}", workers);
      row.training = {{.seconds = 1, .steps = 8, .samples = 512, .loss = 2},
                      {.seconds = 2, .steps = 16, .samples = 1024, .loss = 1.0 / workers}};
      report.rows.push_back(std::move(row));
    }
  }
  return comparison_html(report);
}

TEST(HtmlTable, ScrollsBelowItsHeadingIfItIsLong) {
  std::vector<std::vector<std::string>> rows(25, {"a", "1"});
  EXPECT_THAT(html_table(rows, "t"), HasSubstr("class=\"wide long\""));
  rows.pop_back();
  EXPECT_THAT(html_table(rows, "t"), HasSubstr("class=\"wide\""));
}

TEST(PageInBrowser, DrawsAComparisonsCurvesOverStepsAndByPart) {
  if (!has_chromium()) GTEST_SKIP() << "needs chromium: apt-get install chromium";
  const auto [outcome, log] = visit(curves_page());
  EXPECT_EQ(log, "");
  ASSERT_TRUE(outcome.value("done", false)) << outcome.dump(1);
  EXPECT_LE(outcome["overflow"], 0);
  nlohmann::json curve;
  for (const nlohmann::json& chart : outcome["charts"]) {
    if (chart.contains("parts") && chart["lines"][0].dump().find("0.125") != std::string::npos) curve = chart;
  }
  ASSERT_TRUE(curve.is_object()) << outcome["charts"].dump(1);
  EXPECT_EQ(curve["parts"][0], "workers=8") << "where most is done";
  EXPECT_EQ(curve["parts"].size(), 1 + 8);
  EXPECT_EQ(curve["before"], "seconds of training");
  EXPECT_EQ(curve["after"], "steps of all workers");
  EXPECT_EQ(curve["lines"][0], nlohmann::json::parse("[[[8, 2], [16, 0.125]], [[8, 2], [16, 0.125]]]"));
  EXPECT_EQ(curve["lines"][1], nlohmann::json::parse("[[[8, 2], [16, 1]], [[8, 2], [16, 1]]]"));
  EXPECT_EQ(curve["kept"], "steps of all workers") << "another part is drawn over the same";
}

// A page within a page, as wide as a telephone.
void expect_fits_a_telephone(const std::string& page) {
  const std::string inner = read_page(page);
  const testing_support::TemporaryFolder folder;
  const std::string file = folder.path() / "page.html", dom = folder.path() / "dom";
  std::ofstream(file)
      << "<!DOCTYPE html><body><iframe width=390 height=800 srcdoc=\"" <<
      [&] {
        std::string escaped;
        for (const char c : inner) escaped += c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
        return escaped;
      }()
      << "\"></iframe><script>setInterval(() => { const inner = frames[0].document.getElementById('outcome'); "
         "if (inner) document.title = inner.textContent; }, 50)</script></body>";
  const std::string command = fmt::format(
      "HOME='{0}' timeout --kill-after=5 120 chromium --headless --no-sandbox --disable-gpu --no-first-run "
      "--user-data-dir='{0}/profile' --virtual-time-budget=60000 --dump-dom 'file://{1}' >'{2}' 2>/dev/null",
      folder.path().string(), file, dom);
  EXPECT_EQ(std::system(command.c_str()), 0);
  const std::string shown = text_of(dom);
  const std::size_t begin = shown.find("OUTCOME {"), end = shown.find("} END<");
  ASSERT_NE(begin, std::string::npos) << shown.substr(0, 1000);
  const nlohmann::json outcome = nlohmann::json::parse(shown.substr(begin + 8, end + 1 - begin - 8), nullptr, false);
  ASSERT_TRUE(outcome.value("done", false)) << outcome.dump(1);
  EXPECT_LE(outcome["width"], 390);
  EXPECT_LE(outcome["overflow"], 0);
}

TEST(PageInBrowser, FitsATelephone) {
  if (!has_chromium()) GTEST_SKIP() << "needs chromium: apt-get install chromium";
  expect_fits_a_telephone(sample_page());
  expect_fits_a_telephone(curves_page());
}

}  // namespace
}  // namespace syncopate::experiments
