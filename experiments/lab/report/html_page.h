// A page for a browser, without references to other files. Pure.
#pragma once

#include <string>
#include <vector>

namespace syncopate::experiments {

// Returns the page. `title` is text; `body` is HTML, as it stands below the title.
std::string html_page(const std::string& title, const std::string& body);

// Returns rows of text as a table, the first of them as its heading.
std::string html_table(const std::vector<std::vector<std::string>>& rows);

// Returns charts, each an <svg> element, beside each other where there is room.
std::string html_charts(const std::vector<std::string>& charts);

// Returns sentences as a list.
std::string html_list(const std::vector<std::string>& sentences);

}  // namespace syncopate::experiments
