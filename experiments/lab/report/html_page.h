// A page for a browser, without references to other files: it carries Chart.js and all else that it needs. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/chart.h"

namespace syncopate::experiments {

// Returns the page. `title` is text; `body` is HTML, as it stands below the title.
std::string html_page(const std::string& title, const std::string& body);

// Returns rows of text as a table, the first of them as its heading, which sorts by its columns. `name` says what the
// table has, for those who do not see it, and in the name of its CSV.
std::string html_table(const std::vector<std::vector<std::string>>& rows, const std::string& name);

// Returns names and what belongs to each as a table without a heading.
std::string html_facts(const std::vector<std::vector<std::string>>& rows, const std::string& name);

// Returns charts beside each other where there is room; those that have nothing to draw are left out.
std::string html_charts(const std::vector<AnyChart>& charts);

// Returns a command, of which no word is broken that fits into a line.
std::string html_command(const std::vector<std::string>& words);

// Returns what is shown once its summary is pressed.
std::string html_folded(const std::string& summary, const std::string& html);

// Returns sentences as a list.
std::string html_list(const std::vector<std::string>& sentences);

// Returns a heading and lines of text as they are; empty without a text.
std::string html_lines(const std::string& title, const std::string& text);

}  // namespace syncopate::experiments
