// Writes documents as YAML, as kubectl and people read it. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace syncopate::experiments {

// Returns the documents one below the other, each behind a line "---". A text is quoted unless every reader of YAML 1.1
// and 1.2 takes it for a text as it stands. Requires UTF-8.
std::string yaml_text(const std::vector<nlohmann::ordered_json>& documents);

}  // namespace syncopate::experiments
