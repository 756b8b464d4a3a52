// Escapes text for a page or a picture. Pure.
#pragma once

#include <string>
#include <string_view>

namespace syncopate::experiments {

// Returns `text`, made printable, for use between HTML or SVG tags or within an attribute's quotes.
std::string html_text(std::string_view text);

}  // namespace syncopate::experiments
