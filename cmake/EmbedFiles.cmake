# Writes OUTPUT, a .cc that holds the text of MORE and of every file that FOLDER/*.ENDING matches, under its name without the ending:
# `const std::map<std::string_view, std::string_view>& NAME()` in NAMESPACE, which HEADER declares. Run by the build,
# whenever such a file has changed (syncopate_embed in Room.cmake).
file(GLOB files "${FOLDER}/*.${ENDING}")
list(SORT files)
list(APPEND files ${MORE})
set(text "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n"
         "const std::map<std::string_view, std::string_view>& ${NAME}() {\n"
         "  static const std::map<std::string_view, std::string_view> files = {\n")
string(JOIN "" text ${text})
foreach(path IN LISTS files)
  cmake_path(GET path STEM LAST_ONLY name)
  file(READ "${path}" content)
  string(APPEND text "{\"${name}\",")
  # In pieces: compilers need not take a longer literal.
  string(LENGTH "${content}" length)
  set(begin 0)
  while(begin LESS length)
    string(SUBSTRING "${content}" ${begin} 16000 piece)
    string(APPEND text "\nR\"embedded(${piece})embedded\"")
    math(EXPR begin "${begin} + 16000")
  endwhile()
  string(APPEND text "},\n")
endforeach()
string(APPEND text "  };\n  return files;\n}\n\n}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${text}")
