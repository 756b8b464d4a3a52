# Writes OUTPUT, a header with VERSION and one number for all sources below SOURCE_DIR's ROOMS: programs of different
# hosts are of one build where they have the same. Run by the build, whenever a source has changed (experiments/cluster/host/build_facts.h).
set(patterns)
foreach(room IN LISTS ROOMS)
  foreach(ending IN ITEMS cc h cu proto)
    list(APPEND patterns "${SOURCE_DIR}/${room}/*.${ending}")
  endforeach()
endforeach()
file(GLOB_RECURSE sources RELATIVE "${SOURCE_DIR}" ${patterns})
list(SORT sources)
set(all "")
foreach(source IN LISTS sources)
  file(SHA256 "${SOURCE_DIR}/${source}" hash)
  string(APPEND all "${source} ${hash}\n")
endforeach()
string(SHA256 fingerprint "${all}")
string(SUBSTRING "${fingerprint}" 0 16 fingerprint)
file(WRITE "${OUTPUT}" "inline constexpr const char* kVersion = \"${VERSION}\";\n"
                      "inline constexpr const char* kSourceFingerprint = \"${fingerprint}\";\n")
