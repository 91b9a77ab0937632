# Builds of siltfs-crashtest with a fault in one source of siltfs. The fault is a change of a line,
# which is made in a copy of the source, so the product has no code for it.

# siltfs_faulty_crashtest(<fault> <library> <source> <line> <faulty-line>)
# Makes the program siltfs-crashtest-<fault>. `source` is a source of the library. The program has the
# object of the faulty source before the library, so the linker takes the functions of this object
# where the library has the same ones. The library is position-independent code of g++, which does not
# inline functions that another object may replace, so its own calls reach the faulty ones, too.
function(siltfs_faulty_crashtest fault library source line faulty_line)
  get_target_property(folder ${library} SOURCE_DIR)
  get_target_property(dependencies ${library} LINK_LIBRARIES)
  set(faulty_source ${CMAKE_CURRENT_BINARY_DIR}/faults/${fault}/${source})
  add_custom_command(
    OUTPUT ${faulty_source}
    COMMAND ${CMAKE_COMMAND} -D "FROM=${folder}/${source}" -D "TO=${faulty_source}" -D "LINE=${line}"
      -D "FAULTY_LINE=${faulty_line}" -P ${CMAKE_CURRENT_SOURCE_DIR}/faults/change_line.cmake
    DEPENDS ${folder}/${source} ${CMAKE_CURRENT_SOURCE_DIR}/faults/change_line.cmake
    VERBATIM)
  set(faulty_object siltfs_with_${fault})
  add_library(${faulty_object} OBJECT ${faulty_source})
  target_link_libraries(${faulty_object} PRIVATE ${dependencies})
  target_include_directories(${faulty_object} PRIVATE $<TARGET_PROPERTY:${library},INTERFACE_INCLUDE_DIRECTORIES>)
  siltfs_precompile(library ${faulty_object})
  siltfs_test_program(siltfs-crashtest-${fault}
    SOURCES main.cc $<TARGET_OBJECTS:${faulty_object}>
    DEPENDS siltfs_rocksdb_short_sleep siltfs_schedule_perturbation siltfs_crash_harness CLI11::CLI11 nlohmann_json::nlohmann_json fmt::fmt)
  target_link_options(siltfs-crashtest-${fault} PRIVATE LINKER:--allow-multiple-definition)
endfunction()

# Old values of extended attributes are not kept for snapshots.
siltfs_faulty_crashtest(forget-old-xattrs siltfs_versions version_keeper.cc
  "if (!IsVersionedKey(key, inode) || inode >= newest.inode_limit) continue"
  "if (!IsVersionedKey(key, inode) || inode >= newest.inode_limit || IsKeyOf(Table::kXattr, key)) continue")
# The removal of a snapshot also removes versions that an older snapshot needs.
siltfs_faulty_crashtest(release-needed-versions siltfs_versions version_release.cc
  "if (next != remaining.begin()) before_ = std::prev(next)->number"
  "before_ = 0")
# Garbage collection does not see what only a snapshot refers to.
siltfs_faulty_crashtest(collect-snapshot-chunks siltfs_mark reference_walk.cc
  "Status walked = decode(value)"
  "Status walked = value.empty() ? decode(value) : Status::Ok()")
# Removed files go on counting against their quota.
siltfs_faulty_crashtest(count-removed-files siltfs_inodes inode_lifetimes.cc
  "change.CountUsage(record, {.bytes = record.IsRegular() ? -before.allocated : 0, .files = -1})"
  "change.CountUsage(record, {.bytes = record.IsRegular() ? -before.allocated : 0, .files = 0})")
# A quota lets one more file be made than its limit.
siltfs_faulty_crashtest(exceed-limit siltfs_inodes quotas.cc
  "return before > most || static_cast<uint64_t>(wanted) > most - before"
  "return before > most || static_cast<uint64_t>(wanted) > most - before + 1")
