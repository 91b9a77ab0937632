# libsiltfs.a, the library of chunks for other programs (docs/library.md), its header, its CMake
# package and its pkg-config file: the component "development" of the installation.
#
# The archive has fs/library and all libraries of siltfs below it, because these are static and have
# no headers outside of this project. Libraries of other projects are linked by the program that uses
# the archive; siltfs_library_requires lists them by their names for pkg-config.
include(CMakePackageConfigHelpers)

set(siltfs_library_requires rocksdb liburing libzstd liblz4 libxxhash libcrypto fmt)
set(siltfs_library_targets RocksDB::rocksdb PkgConfig::liburing PkgConfig::siltfs_zstd PkgConfig::siltfs_lz4
  PkgConfig::xxhash OpenSSL::Crypto fmt::fmt Threads::Threads)

# Sets `libraries` to the static libraries of siltfs that `target` needs, itself included. Fails if
# one of them needs a library of another project that is not listed above.
function(siltfs_static_closure libraries target)
  set(found)
  set(waiting ${target})
  while(waiting)
    list(POP_FRONT waiting name)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" name "${name}")
    if(NOT TARGET ${name} OR name IN_LIST found)
      continue()
    endif()
    get_target_property(alias ${name} ALIASED_TARGET)
    if(alias)
      set(name ${alias})
    endif()
    get_target_property(imported ${name} IMPORTED)
    if(imported)
      if(NOT name IN_LIST siltfs_library_targets)
        message(FATAL_ERROR "cmake/SiltfsLibrary.cmake does not list ${name}, which ${target} needs")
      endif()
      continue()
    endif()
    list(APPEND found ${name})
    foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(needed ${name} ${property})
      if(needed)
        list(APPEND waiting ${needed})
      endif()
    endforeach()
  endwhile()
  set(static)
  foreach(name IN LISTS found)
    get_target_property(type ${name} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND static ${name})
    endif()
  endforeach()
  set(${libraries} ${static} PARENT_SCOPE)
endfunction()

siltfs_static_closure(members siltfs_chunk_library)
set(archive ${CMAKE_BINARY_DIR}/lib/libsiltfs.a)
set(script "create ${archive}\n")
foreach(member IN LISTS members)
  string(APPEND script "addlib $<TARGET_FILE:${member}>\n")
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/lib/libsiltfs.mri CONTENT "${script}save\nend\n")
# Debug information would make the archive ten times as large.
add_custom_command(OUTPUT ${archive}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
  COMMAND sh -c "exec \"$0\" -M <\"$1\"" ${CMAKE_AR} ${CMAKE_BINARY_DIR}/lib/libsiltfs.mri
  COMMAND ${CMAKE_STRIP} --strip-debug --enable-deterministic-archives ${archive}
  DEPENDS ${members} ${CMAKE_BINARY_DIR}/lib/libsiltfs.mri
  COMMENT "Merging the static libraries into libsiltfs.a"
  VERBATIM)
add_custom_target(libsiltfs ALL DEPENDS ${archive})
add_dependencies(system_tests libsiltfs)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/siltfs)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/siltfsConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/siltfsConfig.cmake
  INSTALL_DESTINATION ${package_directory} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/siltfsConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
# The paths in siltfs.pc are relative to its own folder, so the installation may be moved.
file(RELATIVE_PATH siltfs_pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" siltfs_pc_prefix "${siltfs_pc_prefix}")
string(REPLACE ";" ", " siltfs_pc_requires "${siltfs_library_requires}")
configure_file(${CMAKE_SOURCE_DIR}/cmake/siltfs.pc.in ${CMAKE_CURRENT_BINARY_DIR}/siltfs.pc @ONLY)

install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(FILES ${CMAKE_SOURCE_DIR}/fs/library/chunks.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/siltfs COMPONENT development)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/siltfsConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/siltfsConfigVersion.cmake
  DESTINATION ${package_directory} COMPONENT development)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/siltfs.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/examples/chunks
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/siltfs-dev/examples COMPONENT development)
