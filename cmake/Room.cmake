# compile_together(TARGET COUNT source...)
#
# Has the compiler take files of one folder together, up to COUNT at a time: two thirds of a file's own time go into
# headers that its neighbours include, too. More than that would make the build after a change of one file wait. No group
# has files of two folders, so that a new file changes the groups of its own folder alone. A file with compiler options of
# its own stays alone.
function(compile_together target together)
  if(NOT SYNCOPATE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${CMAKE_SOURCE_DIR}")  # so that ccache serves every checkout
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    list(APPEND folders ${folder})
    list(APPEND in_${folder} "${source}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH in_${folder} count)
    # Groups of like size: with COUNT 12, 13 files are 7 and 6, not 12 and 1.
    math(EXPR groups "(${count} + ${together} - 1) / ${together}")
    set(place 0)
    foreach(source IN LISTS in_${folder})
      math(EXPR group "${place} * ${groups} / ${count}")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${group}")
      math(EXPR place "${place} + 1")
    endforeach()
  endforeach()
endfunction()

# syncopate_room(NAME [QUICK_BUILD | HOT folder...] [WITHOUT file...] [ROOMS room...] [LIBRARIES target...] [CUDA_LIBRARIES target...])
#
# One folder of the tree is one static library, made of every .cc and .proto below it. Its target is syncopate_NAME, with
# "_" for each "/" of a folder within another. Headers are included as "NAME/file.h", through a folder that holds NAME
# alone: a room sees those that it names in ROOMS, and those that these see. So the compiler enforces the direction of
# imports.
#
# Half of the time that a compiler takes is its optimiser's. So a room with QUICK_BUILD, which decides, watches and
# reports, is hardly optimised. In a room with HOT, the folders named there, where a run spends its time, have all that
# the build type gives (a file may be named, too); the other folders, which act once for each message, have what takes
# little time (syncopate_quick_build and syncopate_messages in Options.cmake).
#
# Files named in WITHOUT are left out.
#
# What lies in folders called cuda makes a library of its own, syncopate_NAME_cuda, where there is a CUDA toolkit: only
# the GPU programs are linked with it.
function(syncopate_room name)
  cmake_parse_arguments(arg "QUICK_BUILD" "" "HOT;WITHOUT;ROOMS;LIBRARIES;CUDA_LIBRARIES" ${ARGN})
  string(REPLACE "/" "_" id "${name}")
  string(REPLACE "/" "_" rooms "${arg_ROOMS}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${name}/*.cc")
  list(FILTER sources EXCLUDE REGEX "/${name}/(.*/)?cuda/")
  foreach(file IN LISTS arg_WITHOUT)
    list(REMOVE_ITEM sources "${CMAKE_SOURCE_DIR}/${name}/${file}")
  endforeach()
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${name}/*.cc" "${CMAKE_SOURCE_DIR}/${name}/*.cu")
  list(FILTER cuda_sources INCLUDE REGEX "/${name}/(.*/)?cuda/")
  file(GLOB_RECURSE protos CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${name}/*.proto")

  set(view "${CMAKE_BINARY_DIR}/rooms/${id}")
  cmake_path(GET name PARENT_PATH parent)
  file(MAKE_DIRECTORY "${view}/${parent}")
  file(CREATE_LINK "${CMAKE_SOURCE_DIR}/${name}" "${view}/${name}" SYMBOLIC)

  set(hot_sources)
  if(arg_HOT)
    list(TRANSFORM arg_HOT PREPEND "^${CMAKE_SOURCE_DIR}/${name}/" OUTPUT_VARIABLE patterns)
    list(JOIN patterns "|" pattern)
    set(hot_sources ${sources})
    list(FILTER hot_sources INCLUDE REGEX "${pattern}")
    list(FILTER sources EXCLUDE REGEX "${pattern}")
  endif()

  add_library(syncopate_${id} STATIC ${sources} ${protos})
  set(targets syncopate_${id})
  if(arg_QUICK_BUILD)
    target_link_libraries(syncopate_${id} PRIVATE syncopate_quick_build)
  elseif(hot_sources)
    target_link_libraries(syncopate_${id} PRIVATE syncopate_messages)
    add_library(syncopate_${id}_hot OBJECT ${hot_sources})
    target_sources(syncopate_${id} PRIVATE $<TARGET_OBJECTS:syncopate_${id}_hot>)
    compile_together(syncopate_${id}_hot 20 ${hot_sources})
    list(APPEND targets syncopate_${id}_hot)
  endif()
  compile_together(syncopate_${id} 20 ${sources})
  foreach(target IN LISTS targets)
    target_include_directories(${target} PUBLIC "${view}" "${CMAKE_BINARY_DIR}/proto/${id}")
    target_link_libraries(${target} PRIVATE syncopate_options PUBLIC ${arg_LIBRARIES})
    foreach(room IN LISTS rooms)
      target_link_libraries(${target} PUBLIC syncopate_${room})
    endforeach()
  endforeach()

  if(SYNCOPATE_HAS_CUDA AND cuda_sources)
    add_library(syncopate_${id}_cuda STATIC ${cuda_sources})
    list(FILTER cuda_sources INCLUDE REGEX "[.]cc$")
    compile_together(syncopate_${id}_cuda 20 ${cuda_sources})
    target_link_libraries(syncopate_${id}_cuda PRIVATE syncopate_options
                          PUBLIC syncopate_${id} ${arg_CUDA_LIBRARIES} CUDA::cudart)
    foreach(room IN LISTS rooms)
      if(TARGET syncopate_${room}_cuda)
        target_link_libraries(syncopate_${id}_cuda PUBLIC syncopate_${room}_cuda)
      endif()
    endforeach()
  endif()

  if(protos)
    file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/proto/${id}")
    protobuf_generate(TARGET syncopate_${id} LANGUAGE cpp IMPORT_DIRS "${CMAKE_SOURCE_DIR}"
                      PROTOC_OUT_DIR "${CMAKE_BINARY_DIR}/proto/${id}")
    # Generated code is not ours to warn about.
    foreach(proto IN LISTS protos)
      file(RELATIVE_PATH path "${CMAKE_SOURCE_DIR}" "${proto}")
      string(REPLACE ".proto" ".pb.cc" generated "${CMAKE_BINARY_DIR}/proto/${id}/${path}")
      set_source_files_properties("${generated}" PROPERTIES COMPILE_OPTIONS "-w")
      # Written before any file that may include it is compiled.
      if(TARGET syncopate_${id}_hot)
        string(REPLACE ".pb.cc" ".pb.h" header "${generated}")
        target_sources(syncopate_${id}_hot PRIVATE "${header}")
      endif()
    endforeach()
  endif()
endfunction()

# syncopate_embed(ROOM FOLDER ENDING FUNCTION HEADER [FILE...])
#
# Gives a room the texts of its data files, so that the program needs none beside it: FUNCTION, which HEADER declares,
# returns all FOLDER/*.ENDING by name, and those of each FILE from elsewhere.
function(syncopate_embed room folder ending function header)
  string(REPLACE "/" "_" id "${room}")
  string(REGEX REPLACE "/.*" "" namespace "${room}")
  set(output "${CMAKE_BINARY_DIR}/generated/${room}/${function}.cc")
  file(GLOB files CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${room}/${folder}/*.${ending}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${CMAKE_SOURCE_DIR}/${room}/${folder}" "-DENDING=${ending}" "-DNAME=${function}"
            "-DHEADER=${header}" "-DNAMESPACE=syncopate::${namespace}" "-DOUTPUT=${output}" "-DMORE=${ARGN}"
            -P "${CMAKE_SOURCE_DIR}/cmake/EmbedFiles.cmake"
    DEPENDS ${files} ${ARGN} "${CMAKE_SOURCE_DIR}/cmake/EmbedFiles.cmake"
    COMMENT "Embedding ${room}/${folder}" VERBATIM)
  target_sources(syncopate_${id} PRIVATE "${output}")
  set_source_files_properties("${output}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
