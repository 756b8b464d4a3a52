// A chart as the JSON that page/page.js draws, and as a sentence for those who do not see it. Pure.
#pragma once

#include <string>

#include "experiments/lab/report/chart.h"

namespace syncopate::experiments {

// Returns one line of JSON that may stand in a page between <script> tags: no `<` is in it. Texts are made printable;
// values that are not finite numbers, and series without any other, are left out. Its members are those of the structs,
// by their names; `kind` is "lines", "intervals" or "bars", charts of lines and of bars have all their
// views in `views`, of which the one numbered `begin` is shown first.
std::string chart_json(const AnyChart& chart);

// Returns what kind of chart it is, its title, axes and series.
std::string chart_sentence(const AnyChart& chart);

}  // namespace syncopate::experiments
