// The page of a demonstration: its question, its charts, its answer, and its exercises. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/demo/demo.h"
#include "experiments/lab/report/chart.h"

namespace syncopate::experiments {

// What a demonstration has come to.
struct DemoOutcome {
  std::vector<AnyChart> charts;
  std::vector<std::string> sentences;  // of the answer
  std::vector<std::string> exercises;  // with their figures
  std::string machine;                 // where and when it ran
};

// Pages of comparisons among the runs are linked, as files of folders beside it.
std::string demo_html(const Demo& demo, const DemoOutcome& outcome);

}  // namespace syncopate::experiments
