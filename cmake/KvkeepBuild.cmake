# Compiler settings, dependencies, and kvkeep_folder(), which turns one folder of src/ into a library and
# its tests into one program.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
if(KVKEEP_BUILD_TESTS OR KVKEEP_BUILD_FUZZERS)
  # Tests run optimised and with assertions.
  string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
endif()
find_program(KVKEEP_CCACHE ccache)
if(KVKEEP_CCACHE AND PROJECT_IS_TOP_LEVEL)
  # What ccache needs to keep files that use precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${KVKEEP_CCACHE})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
find_package(simdjson REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
find_package(nlohmann_json REQUIRED)
if(KVKEEP_BUILD_TESTS OR KVKEEP_BUILD_FUZZERS)
  find_package(GTest REQUIRED)
endif()
if(KVKEEP_BUILD_TESTS)
  enable_testing()
  include(GoogleTest)
endif()

# What all of our C++ is compiled with.
add_library(kvkeep_compiling INTERFACE)
# GCC 12's -Wrestrict sees overlaps in std::string's operator+ that are not there (GCC bug 105651). A
# warning is an error where kvkeep is developed, not where some newer compiler builds it for use.
target_compile_options(kvkeep_compiling INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety> $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<AND:$<BOOL:${KVKEEP_BUILD_TESTS}>,$<BOOL:${KVKEEP_WERROR}>>:-Werror>)
if(KVKEEP_SANITIZE)
  target_compile_options(kvkeep_compiling INTERFACE -fsanitize=${KVKEEP_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(kvkeep_compiling INTERFACE -fsanitize=${KVKEEP_SANITIZE})
endif()

add_library(kvkeep_settings INTERFACE)
target_include_directories(kvkeep_settings INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(kvkeep_settings INTERFACE kvkeep_compiling Threads::Threads OpenSSL::Crypto
  simdjson::simdjson PkgConfig::xxhash nlohmann_json::nlohmann_json)

# What folder `name` may include, from tools/layers.txt.
function(kvkeep_layers name out)
  file(STRINGS ${PROJECT_SOURCE_DIR}/tools/layers.txt line REGEX "^${name}:")
  string(REGEX REPLACE "^${name}: *" "" line "${line}")
  string(REPLACE " " ";" line "${line}")
  set(${out} ${line} PARENT_SCOPE)
endfunction()

# Standard headers that nearly every source file includes, precompiled once: a quarter of the time that a
# build takes. The builds without show that no source file leans on it.
function(kvkeep_precompile target)
  if(TARGET kvkeep_base AND NOT target STREQUAL kvkeep_base)
    target_precompile_headers(${target} REUSE_FROM kvkeep_base)
  else()
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <chrono> <condition_variable>
      <cstdint> <filesystem> <functional> <map> <memory> <mutex> <optional> <span> <string> <string_view>
      <unordered_map> <unordered_set> <utility> <variant> <vector>)
  endif()
endfunction()

# kvkeep_folder(disk SRCS a.cc b.cc TESTS a_test.cc [PRECOMPILE testing/test_store.h] [ONE_THREAD])
#
# Every file is named, so that tools/tidy can report one that is not. PRECOMPILE: the header that takes
# most of the tests' time to compile; gtest.h if none is given. ONE_THREAD: nothing here has threads, so the
# tests are left out where only races are looked for.
function(kvkeep_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 F "ONE_THREAD" "PRECOMPILE" "SRCS;TESTS")
  add_library(kvkeep_${name} STATIC ${F_SRCS})
  if(KVKEEP_PRECOMPILE)
    kvkeep_precompile(kvkeep_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY KVKEEP_FOLDERS ${name})
  target_link_libraries(kvkeep_${name} PUBLIC kvkeep_settings)
  kvkeep_layers(${name} below)
  foreach(folder ${below})
    if(TARGET kvkeep_${folder})
      target_link_libraries(kvkeep_${name} PUBLIC kvkeep_${folder})
    endif()
  endforeach()
  if(F_ONE_THREAD AND KVKEEP_SANITIZE STREQUAL "thread")
    return()
  endif()
  if(KVKEEP_BUILD_TESTS AND F_TESTS)
    add_executable(${name}_test ${F_TESTS})
    target_link_libraries(${name}_test PRIVATE kvkeep_${name} kvkeep_testing GTest::gmock_main GTest::gtest)
    kvkeep_test_program(${name}_test ${name} ${F_PRECOMPILE})
  endif()
endfunction()

# What every test program has: the test data, a precompiled header, and no optimisation of the tests
# themselves, which halves the time to compile them.
function(kvkeep_test_program target prefix)
  if(ARGC GREATER 2)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src/${ARGV2})
  else()
    target_precompile_headers(${target} PRIVATE <gtest/gtest.h>)
  endif()
  target_compile_definitions(${target} PRIVATE KVKEEP_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  target_compile_options(${target} PRIVATE -O0)
  gtest_discover_tests(${target} TEST_PREFIX ${prefix}/ DISCOVERY_TIMEOUT 60)
endfunction()

# kvkeep_fuzzer(size_fuzz size_fuzz.cc): one libFuzzer target, with every folder at hand.
function(kvkeep_fuzzer name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE kvkeep_testing)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
