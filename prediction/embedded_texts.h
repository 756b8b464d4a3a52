// The data files of this room, which the build puts into the program (syncopate_embed in cmake/Room.cmake).
#pragma once

#include <map>
#include <string_view>

namespace syncopate::prediction {

const std::map<std::string_view, std::string_view>& profile_texts();    // profiles/*.json, by name without the ending
const std::map<std::string_view, std::string_view>& published_texts();  // published/*.csv, the same

}  // namespace syncopate::prediction
