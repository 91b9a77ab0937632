# Options that speed up a full build; they change no program's behaviour. tools/run-tests turns them
# on. Without these options each source is compiled alone, which checks that it includes what it
# uses.
option(SILTFS_UNITY "Compile several sources of a target at once, so that headers are read once for all of them" OFF)
option(SILTFS_PRECOMPILED_HEADERS "Precompile the headers of other projects" OFF)

option(SILTFS_FAST_LINKER "Link test programs with lld" OFF)

# --- The linker

# siltfs_link_fast(<target>): links the program with lld if SILTFS_FAST_LINKER is on. lld takes a
# third of the time of the default linker. Call this function for test programs only: the programs
# that users run are linked with the default linker, as in the users' own builds.
function(siltfs_link_fast target)
  if(SILTFS_FAST_LINKER)
    target_link_options(${target} PRIVATE -fuse-ld=lld)
  endif()
endfunction()

# --- Unity builds

# siltfs_unite(<target>): the sources of the target may be compiled together.
function(siltfs_unite target)
  if(SILTFS_UNITY)
    set_property(GLOBAL APPEND PROPERTY SILTFS_UNITED_TARGETS ${target})
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endfunction()

# Groups the sources that may be compiled together. Call it when all targets and their sources are
# known.
function(siltfs_make_unity_groups)
  if(NOT SILTFS_UNITY)
    return()
  endif()
  get_property(targets GLOBAL PROPERTY SILTFS_UNITED_TARGETS)
  set(list)
  foreach(target IN LISTS targets)
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    foreach(source IN LISTS sources)
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
      get_source_file_property(options ${source} TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
      if(source MATCHES "\\.cc$" AND NOT options)
        string(APPEND list "${target};${source}\n")
        # The groups depend on the sources' contents, so CMake runs again when a source changes.
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
      endif()
    endforeach()
  endforeach()
  file(WRITE ${CMAKE_BINARY_DIR}/unity-sources "${list}")
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/unity_groups.py ${CMAKE_SOURCE_DIR} 2500
    INPUT_FILE ${CMAKE_BINARY_DIR}/unity-sources
    OUTPUT_VARIABLE groups
    COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" groups "${groups}")
  # Each line is a list of three parts. CMake sees the list of lines as one flat list of parts.
  while(groups)
    list(POP_FRONT groups target group source)
    get_target_property(folder ${target} SOURCE_DIR)
    set_property(SOURCE ${source} DIRECTORY ${folder} PROPERTY UNITY_GROUP ${group})
  endwhile()
endfunction()

# --- Precompiled headers

set(siltfs_common_headers
  <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <functional> <limits> <map> <memory> <mutex> <optional> <set> <span>
  <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

# siltfs_precompile(<kind> <target>): gives the target the precompiled headers of its kind. The
# headers are precompiled once per kind, with the options common to all targets of the kind:
# - "library": headers of the standard library, and fmt;
# - "quiet_library": the same headers, for code in which tests spend little time (siltfs_quiet_code);
# - "command_line": also CLI11 and nlohmann/json;
# - "cold_command_line": the same headers as "command_line", for code that takes little time to run
#   (siltfs_command_code);
# - "test": headers of the standard library, fmt and Catch2. Tests that include nlohmann/json compile
#   no faster if it is precompiled;
# - "test_library": the same headers as "test", for code that tests share;
# - "test_program": the same headers as "command_line", for programs that only test siltfs.
# Give the headers with CLI11 only to targets that use it: it defines global constants, and each
# object contains code for them.
# A compiler reads a precompiled header only for a source with the same options. So the targets of
# the first four kinds must be libraries, which are compiled for any address (-fPIC).
function(siltfs_precompile kind target)
  if(NOT SILTFS_PRECOMPILED_HEADERS)
    return()
  endif()
  if(kind STREQUAL "test_library" AND NOT CMAKE_BUILD_TYPE MATCHES "^(RelWithDebInfo|Sanitize)$")
    set(kind test) # siltfs_test_code adds no option of its own to this build
  endif()
  if(kind STREQUAL "quiet_library" AND NOT CMAKE_BUILD_TYPE STREQUAL "Sanitize")
    set(kind library) # siltfs_quiet_code adds no option
  endif()
  set(maker siltfs_precompiled_for_${kind})
  if(NOT TARGET ${maker})
    set(source ${CMAKE_BINARY_DIR}/${maker}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(${maker} OBJECT ${source})
    target_link_libraries(${maker} PRIVATE siltfs_options fmt::fmt)
    if(kind STREQUAL "test_program")
      target_link_libraries(${maker} PRIVATE siltfs_test_code)
    elseif(kind MATCHES "^test")
      target_link_libraries(${maker} PRIVATE Catch2::Catch2)
      if(kind STREQUAL "test_library")
        target_link_libraries(${maker} PRIVATE siltfs_cold_code)
      else()
        target_link_libraries(${maker} PRIVATE siltfs_test_code)
      endif()
      if(Catch2_VERSION VERSION_LESS 3)
        target_precompile_headers(${maker} PRIVATE <catch2/catch.hpp>)
      else()
        target_precompile_headers(${maker} PRIVATE <catch2/catch_all.hpp>)
      endif()
    else()
      set_target_properties(${maker} PROPERTIES POSITION_INDEPENDENT_CODE ON)
      if(kind STREQUAL "cold_command_line")
        target_link_libraries(${maker} PRIVATE siltfs_command_code)
      elseif(kind STREQUAL "quiet_library")
        target_link_libraries(${maker} PRIVATE siltfs_quiet_code)
      endif()
    endif()
    if(kind MATCHES "command_line$|^test_program$")
      target_link_libraries(${maker} PRIVATE CLI11::CLI11 nlohmann_json::nlohmann_json)
      target_precompile_headers(${maker} PRIVATE <CLI/CLI.hpp> <nlohmann/json.hpp>)
    endif()
    target_precompile_headers(${maker} PRIVATE ${siltfs_common_headers})
  endif()
  if(NOT kind MATCHES "^test")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${maker})
endfunction()
