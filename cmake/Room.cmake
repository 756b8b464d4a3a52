# syncopate_room(NAME [ROOMS room...] [LIBRARIES target...] [CUDA_LIBRARIES target...])
#
# One folder of the tree is one static library, syncopate_NAME, made of every .cc and .proto below it (but not of
# main/, which holds programs). Headers are included as "NAME/file.h", through a folder that holds NAME alone: a room that
# does not name another in ROOMS cannot include it. So the direction of imports is enforced by the compiler.
#
# What lies in folders called cuda makes a library of its own, syncopate_NAME_cuda, where there is a CUDA toolkit: only
# the GPU programs are linked with it.
function(syncopate_room name)
  cmake_parse_arguments(arg "" "" "ROOMS;LIBRARIES;CUDA_LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${name}/*.cc")
  list(FILTER sources EXCLUDE REGEX "/${name}/(main|(.*/)?cuda)/")
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${name}/*.cc" "${CMAKE_SOURCE_DIR}/${name}/*.cu")
  list(FILTER cuda_sources INCLUDE REGEX "/${name}/(.*/)?cuda/")
  file(GLOB_RECURSE protos CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${name}/*.proto")

  set(view "${CMAKE_BINARY_DIR}/rooms/${name}")
  file(MAKE_DIRECTORY "${view}")
  file(CREATE_LINK "${CMAKE_SOURCE_DIR}/${name}" "${view}/${name}" SYMBOLIC)

  add_library(syncopate_${name} STATIC ${sources} ${protos})
  target_include_directories(syncopate_${name} PUBLIC "${view}" "${CMAKE_BINARY_DIR}/proto/${name}")
  target_link_libraries(syncopate_${name} PRIVATE syncopate_options PUBLIC ${arg_LIBRARIES})
  foreach(room IN LISTS arg_ROOMS)
    target_link_libraries(syncopate_${name} PUBLIC syncopate_${room})
  endforeach()

  if(SYNCOPATE_HAS_CUDA AND cuda_sources)
    add_library(syncopate_${name}_cuda STATIC ${cuda_sources})
    target_link_libraries(syncopate_${name}_cuda PRIVATE syncopate_options
                          PUBLIC syncopate_${name} ${arg_CUDA_LIBRARIES} CUDA::cudart)
    foreach(room IN LISTS arg_ROOMS)
      if(TARGET syncopate_${room}_cuda)
        target_link_libraries(syncopate_${name}_cuda PUBLIC syncopate_${room}_cuda)
      endif()
    endforeach()
  endif()

  if(protos)
    file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/proto/${name}")
    protobuf_generate(TARGET syncopate_${name} LANGUAGE cpp IMPORT_DIRS "${CMAKE_SOURCE_DIR}"
                      PROTOC_OUT_DIR "${CMAKE_BINARY_DIR}/proto/${name}")
    # Generated code is not ours to warn about.
    foreach(proto IN LISTS protos)
      file(RELATIVE_PATH path "${CMAKE_SOURCE_DIR}" "${proto}")
      string(REPLACE ".proto" ".pb.cc" generated "${CMAKE_BINARY_DIR}/proto/${name}/${path}")
      set_source_files_properties("${generated}" PROPERTIES COMPILE_OPTIONS "-w")
    endforeach()
  endif()
endfunction()
