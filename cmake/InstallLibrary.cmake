# What `cmake --install` puts below its prefix with SYNCOPATE_LIBRARY: the shared library, its header, the program of
# parameter servers, and what find_package(Syncopate) reads.
include(CMakePackageConfigHelpers)

# One object of all rooms, whose names stay inside (cmake/library_names.map).
set(names "${CMAKE_SOURCE_DIR}/cmake/library_names.map")
add_library(syncopate_shared SHARED $<TARGET_OBJECTS:syncopate_library>)
set_target_properties(syncopate_shared PROPERTIES OUTPUT_NAME syncopate EXPORT_NAME Syncopate LINKER_LANGUAGE CXX
                      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                      LINK_DEPENDS "${names}")
target_compile_features(syncopate_shared INTERFACE cxx_std_20)
target_include_directories(syncopate_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(syncopate_shared PRIVATE syncopate_ps syncopate_allreduce syncopate_common syncopate_options
                      ${CMAKE_DL_LIBS})
target_link_options(syncopate_shared PRIVATE "-Wl,--version-script=${names}" -Wl,--no-undefined -Wl,--as-needed)

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/Syncopate")
install(TARGETS syncopate_shared EXPORT Syncopate LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS syncopate_server RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/syncopate")
install(FILES library/syncopate/syncopate.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/syncopate")
install(EXPORT Syncopate NAMESPACE Syncopate:: FILE SyncopateConfig.cmake DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/SyncopateConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/SyncopateConfigVersion.cmake" DESTINATION "${package}")
