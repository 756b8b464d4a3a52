# syncopate_options: what every target is compiled with.
add_library(syncopate_options INTERFACE)
set(cxx "$<COMPILE_LANGUAGE:CXX>")
target_compile_options(syncopate_options INTERFACE
  "$<${cxx}:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion;-Wno-missing-field-initializers>")
# GCC 12 sees overlaps that are not there in concatenated strings (its bug 105329).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(syncopate_options INTERFACE $<${cxx}:-Wno-restrict>)
endif()
# Clang needs no ivdep: it looks at run time whether buffers overlap.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(syncopate_options INTERFACE $<${cxx}:-Wno-unknown-pragmas>)
endif()
# The compiler must be free to vectorise sums of products; NaN and infinity keep their meaning.
target_compile_options(syncopate_options INTERFACE "$<${cxx}:-fno-math-errno;-fno-trapping-math>")
if(SYNCOPATE_NATIVE)
  target_compile_options(syncopate_options INTERFACE $<${cxx}:-march=native>)
else()
  # Ranks on different processors must come to the same bits. Loops that take the time are compiled for several
  # processors (common/os/target_clones.h), where compiler and loader can choose between functions. A sanitizer is not
  # ready yet when the loader does.
  target_compile_options(syncopate_options INTERFACE $<${cxx}:-ffp-contract=off>)
  include(CheckCXXSourceCompiles)
  check_cxx_source_compiles("
    __attribute__((target_clones(\"default\", \"arch=x86-64-v3\", \"arch=x86-64-v4\"), flatten)) int one() { return 1; }
    int main() { return one() - 1; }" SYNCOPATE_HAS_TARGET_CLONES)
  if(SYNCOPATE_HAS_TARGET_CLONES AND NOT SYNCOPATE_SANITIZE)
    target_compile_definitions(syncopate_options INTERFACE SYNCOPATE_HAS_TARGET_CLONES)
  endif()
endif()
# GCC before 14 aligns what the address sanitizer puts on its fake stack to 32 bytes, and stores 64 there as if they were
# aligned (its bug 110027): a crash in whatever function has eight pointers to copy.
if(SYNCOPATE_NATIVE AND SYNCOPATE_SANITIZE MATCHES "address" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64"
   AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  target_compile_options(syncopate_options INTERFACE $<${cxx}:-mno-avx512f>)
endif()
if(SYNCOPATE_SANITIZE)
  target_compile_options(syncopate_options INTERFACE -fsanitize=${SYNCOPATE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(syncopate_options INTERFACE -fsanitize=${SYNCOPATE_SANITIZE})
  target_compile_definitions(syncopate_options INTERFACE SYNCOPATE_SANITIZE="${SYNCOPATE_SANITIZE}")
endif()
# A program that uses the library, or Python, sees what is declared for it, and nothing of ours beside it.
if(SYNCOPATE_LIBRARY OR SYNCOPATE_PYTHON)
  target_compile_options(syncopate_options INTERFACE "$<${cxx}:-fvisibility=hidden;-fvisibility-inlines-hidden>")
endif()
# Levels of optimisation for code that does not compute on every value of a model; see syncopate_room. The presets with
# sanitizers take -O1 for everything: at -O0 a build for fuzzing takes 312 s instead of 368, and a harness makes a tenth
# of its runs.
add_library(syncopate_quick_build INTERFACE)
target_compile_options(syncopate_quick_build INTERFACE "$<$<AND:${cxx},$<CONFIG:Release>>:-Og>")
add_library(syncopate_messages INTERFACE)
target_compile_options(syncopate_messages INTERFACE
  "$<$<AND:${cxx},$<CONFIG:Release>>:-O1;-ftree-vectorize;-finline-functions;-finline-small-functions>")
# GCC tidies its memory up again and again: with 400 MB before it first does, it takes 9 % less time, and at most 0.8 GB.
target_compile_options(syncopate_options INTERFACE
  "$<$<AND:${cxx},$<CXX_COMPILER_ID:GNU>>:--param=ggc-min-heapsize=400000>")
# An error in a program that strangers can reach is to end the program, and not to be theirs to use: containers and the
# C library check bounds, functions their stacks; the program lies anywhere in memory, and its tables of functions are
# written once, before it begins.
if(SYNCOPATE_HARDENED)
  target_compile_definitions(syncopate_options INTERFACE SYNCOPATE_HARDENED _GLIBCXX_ASSERTIONS)
  # What a shared object is linked from lies anywhere in memory as well.
  set(position_independent -fPIE)
  if(CMAKE_POSITION_INDEPENDENT_CODE)
    set(position_independent -fPIC)
  endif()
  target_compile_options(syncopate_options INTERFACE
    "$<${cxx}:${position_independent};-fstack-protector-strong;-fstack-clash-protection>")
  target_link_options(syncopate_options INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie> -Wl,-z,relro,-z,now)
  # It needs an optimiser; sanitizers check more of the same, and would be kept from it.
  if(NOT SYNCOPATE_SANITIZE)
    target_compile_options(syncopate_options INTERFACE
      "$<$<AND:${cxx},$<NOT:$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  endif()
endif()
# The update rule must round alike in a vector's body and in its tail, so that it does not matter how a range is cut;
# left free, the compiler may fuse multiply and add in one and not in the other. A device's kernel follows suit.
set_source_files_properties("${CMAKE_SOURCE_DIR}/common/optimizer/optimizer.cc" PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
# What is encoded must be the same bytes on every processor, and a decoded sum the same bits on every rank.
file(GLOB codec_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/common/codec/*.cc")
set_source_files_properties(${codec_sources} PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
# Where a check of each subscript costs more than 2 % of what a benchmark measures, there is none: rows that are read from
# a small table (row_bench: 12 to 15 %), the search for the largest gradients (codec_bench, topk: 7 to 10 %; what comes
# from others it checks itself) and products with thin matrices (power_sgd_round: 16 %, of which stacks are 10 %).
if(SYNCOPATE_HARDENED)
  set(unchecked common/tables/row_index.cc common/tables/row_table.cc common/codec/top_k.cc common/codec/power_sgd.cc
      worker/backend/batch_norm_ops.cc worker/recommender/row_lookup.cc worker/data/image_dataset.cc)
  list(TRANSFORM unchecked PREPEND "${CMAKE_SOURCE_DIR}/")
  set_property(SOURCE ${unchecked} APPEND PROPERTY COMPILE_OPTIONS -U_GLIBCXX_ASSERTIONS)
  set_property(SOURCE "${CMAKE_SOURCE_DIR}/common/codec/power_sgd.cc"
               APPEND PROPERTY COMPILE_OPTIONS -fno-stack-protector)
endif()
if(SYNCOPATE_HAS_CUDA)
  set_source_files_properties("${CMAKE_SOURCE_DIR}/common/device/cuda/update_kernels.cu"
                              PROPERTIES COMPILE_OPTIONS "--fmad=false;-ftz=true;-Xcompiler=-ffp-contract=off")
endif()
