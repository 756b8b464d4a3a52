# Every library that Syncopate stands on, in one place, with the reason. All come from the distribution's packages;
# setup/packages.txt names the package of each.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(ZeroMQ REQUIRED libzmq>=4.3)  # messages between processes, through cppzmq
find_path(CPPZMQ_INCLUDE_DIR zmq.hpp REQUIRED)
find_library(ZEROMQ_LIBRARY zmq REQUIRED)
pkg_check_modules(Sodium REQUIRED IMPORTED_TARGET libsodium>=1.0.18)  # encryption of plain sockets between hosts
find_package(Protobuf 3.21 REQUIRED)       # headers, control messages
find_package(fmt 9 REQUIRED)               # formatting
find_package(spdlog 1.10 REQUIRED)         # logs
# Without the folders of libraries that libzmq is linked with: their flags came in another order when CMake ran again, and
# everything was compiled anew.
add_library(ZeroMQ::ZeroMQ UNKNOWN IMPORTED)
set_target_properties(ZeroMQ::ZeroMQ PROPERTIES IMPORTED_LOCATION "${ZEROMQ_LIBRARY}"
                      INTERFACE_INCLUDE_DIRECTORIES "${CPPZMQ_INCLUDE_DIR}")

# The library and the Python module are shared objects of four rooms, and not to be linked with Open MPI: mpirun may start
# who uses them all the same.
if(SYNCOPATE_PYTHON OR SYNCOPATE_LIBRARY)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(SYNCOPATE_WITHOUT_MPI collective/mpi_collective.cc)
endif()
if(SYNCOPATE_LIBRARY)
  return()
elseif(SYNCOPATE_PYTHON)
  find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
  find_package(nanobind CONFIG REQUIRED)   # the module; pip brings it for the build
  return()
endif()

pkg_check_modules(XxHash REQUIRED IMPORTED_TARGET libxxhash>=0.8)  # checksums of checkpoints: XXH3
find_package(ZLIB REQUIRED)                # IDX files as MNIST ships them: .gz
# Images of a person's own. Two small libraries, since none of the distribution has both but large ones that read a
# hundred formats more, and each of those is a parser that a hostile file reaches.
find_package(PNG 1.6 REQUIRED)             # PNG: libpng
find_package(JPEG REQUIRED)                # JPEG: libjpeg-turbo
find_path(DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)  # oneDNN: matrix products and convolutions on the CPU
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)   # only to hold oneDNN, which is built with it, to one thread
find_package(MPI REQUIRED COMPONENTS CXX)  # Open MPI: a collective, and a launcher
set(SYNCOPATE_MPI MPI::MPI_CXX)
find_package(CLI11 2.1 REQUIRED)           # options of benchmarks
find_package(nlohmann_json 3.11 REQUIRED)  # summary.json, environment.json
# Manifests for Kubernetes. kubectl reads JSON, too, but people read and change manifests, which YAML is better for: it has
# comments, and no brackets. Ours to write it would mean to know again what needs an escape.
find_package(yaml-cpp 0.7 REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS context)  # fibers: the actors of a simulated world
find_package(GTest 1.12 REQUIRED)          # tests
# Charts of pages, which carry its text with them. Nothing is compiled or linked with it.
find_file(CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH)
if(NOT CHART_JS)
  message(FATAL_ERROR "Chart.js is missing, which pages draw charts with: install libjs-chart.js, or name the file with -DCHART_JS=FILE")
endif()
if(SYNCOPATE_BENCHMARKS)
  find_package(benchmark 1.7 REQUIRED)     # benchmarks
  find_package(Gloo QUIET)                 # a peer in allreduce_bench; left out where it is not there (libgloo-dev)
endif()

# The distribution's own CMake file of oneDNN asks for OpenCL's headers, which nothing here uses.
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION "${DNNL_LIBRARY}"
                      INTERFACE_INCLUDE_DIRECTORIES "${DNNL_INCLUDE_DIR}")

# MPI's C interface is all that is used.
set_property(TARGET MPI::MPI_CXX APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS OMPI_SKIP_MPICXX=1)

# An oracle of the simulated cluster's networks, for tests alone; left out where it is not there (libsimgrid-dev).
find_path(SIMGRID_INCLUDE_DIR simgrid/s4u.hpp)
find_library(SIMGRID_LIBRARY simgrid)
if(SIMGRID_INCLUDE_DIR AND SIMGRID_LIBRARY)
  message(STATUS "SimGrid: ${SIMGRID_LIBRARY}; simgrid_tests is built")
else()
  message(STATUS "SimGrid: not found; simgrid_tests is not built")
endif()

include(Cuda)  # CUDA toolkit (cuBLAS), cuDNN and NCCL, for the GPU programs; not of the distribution, and optional
