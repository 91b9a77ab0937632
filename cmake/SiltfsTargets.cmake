# Functions that define siltfs targets. They enforce the folder graph (docs/architecture.md).
# Headers are included by their path from the project's root ("store/base/status.h"). But each
# library exports an include root that holds only the library's own folder (a symbolic link in the
# build tree). So a header of a folder that a target does not link against is not found, and the
# build fails.

add_library(siltfs_options INTERFACE)
target_compile_features(siltfs_options INTERFACE cxx_std_20)
target_compile_options(siltfs_options INTERFACE
  -Wall -Wextra $<$<BOOL:${SILTFS_WERROR}>:-Werror> -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wunused-result
  -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(siltfs_options INTERFACE -Wthread-safety)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 gives two kinds of false warnings: that the value of an empty std::optional is used
  # uninitialised, and that an access to an atomic behind a shared_ptr overflows. clang and the
  # sanitizers find real errors of both kinds.
  target_compile_options(siltfs_options INTERFACE -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
endif()
if(SILTFS_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # In a unity build, a generated file includes the sources of a group. So g++ treats these sources
  # as headers, and warns about types with members from an unnamed namespace. In a source such types
  # are no fault.
  target_compile_options(siltfs_options INTERFACE -Wno-subobject-linkage)
endif()
if(SILTFS_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # In a group of sources, clang warns if a local variable of one source has the name of a constant
  # in another source. A source that is compiled alone does not see this constant, so the equal
  # names are no fault.
  target_compile_options(siltfs_options INTERFACE -Wno-shadow)
endif()
if(SILTFS_UNITY AND SILTFS_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The checks that sanitizers insert make g++ give false warnings, so warnings are not errors in
  # this build. Builds without sanitizers report the real warnings as errors.
  target_compile_options(siltfs_options INTERFACE -Wno-error)
endif()
if(SILTFS_CHECK_STATUS)
  target_compile_definitions(siltfs_options INTERFACE SILTFS_CHECK_STATUS=1)
endif()
if(SILTFS_FUZZ)
  target_compile_options(siltfs_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(SILTFS_SANITIZE)
  target_compile_options(siltfs_options INTERFACE -fsanitize=${SILTFS_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(siltfs_options INTERFACE -fsanitize=${SILTFS_SANITIZE})
  if(SILTFS_SANITIZE_TRAP)
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      message(FATAL_ERROR "SILTFS_SANITIZE_TRAP needs clang: set CMAKE_CXX_COMPILER, or leave the option out")
    endif()
    # The same checks as without this option, but the code that would describe each failure is left
    # out, so the tests take less time. The check of dynamic types (vptr) cannot raise a signal, so
    # it keeps its message.
    target_compile_options(siltfs_options INTERFACE -fsanitize-trap=undefined -fno-sanitize-trap=vptr)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Of the warnings, only those about lock annotations are errors. Each version of clang has new
    # warnings of other kinds; tools/lint checks those.
    target_compile_options(siltfs_options INTERFACE -Wno-error -Werror=thread-safety)
    # Some sources test these macros. g++ defines them itself, but clang does not.
    if(SILTFS_SANITIZE MATCHES "address")
      target_compile_definitions(siltfs_options INTERFACE __SANITIZE_ADDRESS__=1)
    endif()
    if(SILTFS_SANITIZE MATCHES "thread")
      target_compile_definitions(siltfs_options INTERFACE __SANITIZE_THREAD__=1)
    endif()
  endif()
endif()

# Options for code that tests share, and for test programs that spend much of their time in their own
# code (OPTIMISED), in addition to siltfs_options. In builds with sanitizers, inlining makes a test's
# assertions take a quarter longer to compile, so this code is compiled without inlining. The
# libraries are compiled with inlining: they compile about as fast with it, and the tests spend
# their time in the libraries.
add_library(siltfs_cold_code INTERFACE)
target_compile_options(siltfs_cold_code INTERFACE $<$<CONFIG:Sanitize>:-fno-inline>)

# Options for code that includes CLI11 or nlohmann/json and takes little time to run. These headers
# define large inline functions, which each object contains again. With -O2, a compiler spends most
# of its time on them. So an optimised build compiles this code with -O1, and a build with sanitizers
# with -O0 and without the checks for undefined behaviour, which would take a quarter of the
# compilation.
add_library(siltfs_command_code INTERFACE)
target_compile_options(siltfs_command_code INTERFACE
  $<$<CONFIG:RelWithDebInfo>:-O1> "$<$<CONFIG:Sanitize>:-O0;-fno-sanitize=undefined>")

# Folders in which tests spend their time. A build with sanitizers optimises only the libraries of these
# folders: without optimisation, a library compiles in less than half of the time.
set(siltfs_busy_folders
  "^(chunker|index.*|store/(base|env|segment|superblock)|fs/(chunks|content|kv|mark|meta|recipe|records|rocksdb|segments|versions))$")
add_library(siltfs_quiet_code INTERFACE)
target_compile_options(siltfs_quiet_code INTERFACE $<$<CONFIG:Sanitize>:-O0>)

# Options for the sources of tests. They are compiled without optimisation. That takes half of their
# compilation time off an optimised build, and more off a build with sanitizers. The libraries under
# test are optimised. Libraries that tests share (siltfs_test_library) are optimised, too, because
# campaigns spend their time in them.
add_library(siltfs_test_code INTERFACE)
target_compile_options(siltfs_test_code INTERFACE $<$<CONFIG:RelWithDebInfo,Sanitize>:-O0>)
# The checks for undefined behaviour take a fifth of the compilation, and are for the product.
target_compile_options(siltfs_test_code INTERFACE $<$<CONFIG:Sanitize>:-fno-sanitize=undefined>)

# siltfs_include_root(<out-variable> <name> <folder>...): makes an include root in the build tree
# that has only these folders.
function(siltfs_include_root out_variable name)
  set(root ${CMAKE_BINARY_DIR}/include-roots/${name})
  foreach(folder IN LISTS ARGN)
    get_filename_component(parent ${root}/${folder} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${folder} ${root}/${folder} SYMBOLIC)
  endforeach()
  set(${out_variable} ${root} PARENT_SCOPE)
endfunction()

# siltfs_library(<name> FOLDER <folder> [COMMAND_LINE [COLD]] [SOURCES <file>...]
#                [DEPENDS <target>...] [PRIVATE_DEPENDS <target>...])
# A library of the sources of one folder. Targets that link it also see its DEPENDS, but not its
# PRIVATE_DEPENDS. COMMAND_LINE: most sources include CLI11 or nlohmann/json, which the library's
# precompiled header contains. COLD: the code takes little time to run, so it is compiled with
# siltfs_command_code.
function(siltfs_library name)
  cmake_parse_arguments(ARG "COMMAND_LINE;COLD" "FOLDER" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  siltfs_include_root(root ${name} ${ARG_FOLDER})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_include_directories(${name} PUBLIC ${root})
    target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE siltfs_options ${ARG_PRIVATE_DEPENDS})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    siltfs_unite(${name})
    if(ARG_COLD)
      target_link_libraries(${name} PRIVATE siltfs_command_code)
      siltfs_precompile(cold_command_line ${name})
    elseif(ARG_COMMAND_LINE)
      siltfs_precompile(command_line ${name})
    elseif(NOT ARG_FOLDER MATCHES "${siltfs_busy_folders}")
      target_link_libraries(${name} PRIVATE siltfs_quiet_code)
      siltfs_precompile(quiet_library ${name})
    else()
      siltfs_precompile(library ${name})
    endif()
    if(SILTFS_CHECK_STATUS)
      target_compile_definitions(${name} PUBLIC SILTFS_CHECK_STATUS=1)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${root})
    target_link_libraries(${name} INTERFACE ${ARG_DEPENDS})
  endif()
endfunction()

# All programs, and the programs of the tests with one of these labels. A normal run of
# tools/run-tests builds only this target in release mode, and runs only the tests with these labels
# (the variable `system_labels` there). All other tests have run with AddressSanitizer before.
set(siltfs_system_labels system mount mount-long crash crash-finds build bench memory-segments release)
add_custom_target(system_tests)

# siltfs_executable(<name> SOURCES <file>... [DEPENDS <target>...])
# A program. Its own sources only parse the command line; the rest of its code is in libraries.
function(siltfs_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE siltfs_options siltfs_cold_code ${ARG_DEPENDS})
  add_dependencies(system_tests ${name})
endfunction()

# siltfs_test_program(<name> SOURCES <file>... [DEPENDS <target>...])
# A program that only tests siltfs, with a command line of its own.
function(siltfs_test_program name)
  siltfs_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE siltfs_test_code)
  siltfs_unite(${name})
  siltfs_precompile(test_program ${name})
endfunction()

# siltfs_test_library(<name> FOLDER <folder> SOURCES <file>... [DEPENDS <target>...])
# Code shared by several test programs. Its headers are found by their path from the project's root.
function(siltfs_test_library name)
  cmake_parse_arguments(ARG "" "FOLDER" "SOURCES;DEPENDS" ${ARGN})
  siltfs_include_root(root ${name} ${ARG_FOLDER})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${root})
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE siltfs_options siltfs_cold_code)
  siltfs_unite(${name})
  siltfs_precompile(test_library ${name})
endfunction()

# siltfs_test(<name> SOURCES <file>... [DEPENDS <target>...] [LABELS <label>...]
#             [TIMEOUT <seconds>] [OPTIMISED] [RACES] [SANITIZED_LATER])
# A Catch2 program that is one entry of ctest. It links siltfs_test_support (tests/support), the
# code that all tests share. A test that does less with a sanitizer also gets the label "release".
# OPTIMISED: the program spends much of its time in its own sources, for example in a model, so
# builds with sanitizers optimise these sources, too.
# RACES: most test cases use one thread. So a build with ThreadSanitizer runs only those that have the
# tag [race] or are in a source that is called *_threads_test.cc.
# SANITIZED_LATER: the program takes long to compile or to run. So builds with AddressSanitizer leave it
# out. A build with ThreadSanitizer leaves it out, too, unless the program also has RACES.
# Both do not apply to the builds of a long run (SILTFS_WHOLE_SANITIZED).
function(siltfs_test name)
  cmake_parse_arguments(ARG "OPTIMISED;RACES;SANITIZED_LATER" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE siltfs_options siltfs_test_support ${ARG_DEPENDS})
  siltfs_link_fast(${name})
  siltfs_unite(${name})
  if(ARG_OPTIMISED AND SILTFS_SANITIZE)
    target_link_libraries(${name} PRIVATE siltfs_cold_code)
    siltfs_precompile(test_library ${name})
  else()
    target_link_libraries(${name} PRIVATE siltfs_test_code)
    siltfs_precompile(test ${name})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  foreach(source IN LISTS ARG_SOURCES)
    # These are the sources with test cases that sanitizers leave out, and the sources that cut the
    # power or fail the device for fewer calls (tests/support/crash_points.h).
    cmake_path(ABSOLUTE_PATH source)
    file(STRINGS ${source} fewer REGEX "__SANITIZE_ADDRESS__|crash_points\\.h" LIMIT_COUNT 1)
    if(fewer)
      list(APPEND ARG_LABELS release)
      break()
    endif()
  endforeach()
  if(ARG_SANITIZED_LATER)
    list(APPEND ARG_LABELS release)
  endif()
  foreach(label IN LISTS ARG_LABELS)
    if(label IN_LIST siltfs_system_labels)
      add_dependencies(system_tests ${name})
    endif()
  endforeach()
  set(race_cases FALSE)
  if(ARG_RACES AND SILTFS_SANITIZE MATCHES "thread")
    set(race_cases TRUE)
  endif()
  if(ARG_SANITIZED_LATER AND SILTFS_SANITIZE AND NOT SILTFS_WHOLE_SANITIZED AND NOT race_cases)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  # --durations prints each test case when it ends. So the output of a test program that hangs shows
  # which test cases it has finished.
  set(cases)
  if(race_cases AND NOT SILTFS_WHOLE_SANITIZED)
    set(wanted)
    foreach(source IN LISTS ARG_SOURCES)
      cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
      file(STRINGS ${path} tagged REGEX "\\[race\\]" LIMIT_COUNT 1)
      if(source MATCHES "^(.*_threads_test)\\.cc$")
        list(APPEND wanted "[#${CMAKE_MATCH_1}]")
      elseif(tagged)
        list(APPEND wanted "[race]")
      endif()
    endforeach()
    if(NOT wanted)
      message(FATAL_ERROR "${name}: RACES, but no test case is about threads")
    endif()
    list(REMOVE_DUPLICATES wanted)
    list(JOIN wanted "," wanted)
    set(cases "-#" "${wanted}")
    if(Catch2_VERSION VERSION_LESS 3)
      list(APPEND cases --warn NoTests) # later versions always fail then
    endif()
  endif()
  add_test(NAME ${name} COMMAND ${name} --durations yes ${cases})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
    if(SILTFS_SANITIZE)
      set(ARG_TIMEOUT 600) # for a test that takes two minutes on an idle machine, beside others
    endif()
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
  if(SILTFS_SANITIZE MATCHES "thread")
    set_tests_properties(${name} PROPERTIES
      ENVIRONMENT "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan.suppressions")
  endif()
endfunction()
