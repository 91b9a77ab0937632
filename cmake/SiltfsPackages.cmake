# Installation of documents and service files, and packages for Debian. `cpack` in a build tree
# makes the packages siltfs and siltfs-dbgsym from what is built there, and
# `cpack --config CPackDevelopmentConfig.cmake` the package siltfs-dev; tools/make-packages builds
# with the options of a distribution first.
#
# Components of the installation:
# - program: the program, its links, service files, documents;
# - manual: manual pages and texts that a Debian package has in another form;
# - debian: compressed manual pages and the other files that only a Debian package has. A plain
#   `cmake --install` leaves them out;
# - development: the library of chunks (cmake/SiltfsLibrary.cmake);
# - debian-development: files that only the Debian package of this library has.
include(GNUInstallDirs)

set(SILTFS_DEBIAN_REVISION 1 CACHE STRING "Debian's revision: the part of the package version after the hyphen")
set(siltfs_debian_version ${PROJECT_VERSION}-${SILTFS_DEBIAN_REVISION})
set(siltfs_maintainer "siltfs maintainers <maintainers@siltfs.invalid>")
# If SOURCE_DATE_EPOCH is set, CMake takes this time, so that a package can be made again bit for bit.
string(TIMESTAMP siltfs_package_date "%a, %d %b %Y %H:%M:%S +0000" UTC)

set(debian_directory ${CMAKE_SOURCE_DIR}/tools/debian)
set(systemd_directory lib/systemd/system)
set(man_directory ${CMAKE_INSTALL_MANDIR}/man8)

# systemd reads units only below /usr or /usr/local, so the units name the program without its folder.
install(FILES
    ${CMAKE_SOURCE_DIR}/tools/systemd/siltfs@.service
    ${CMAKE_SOURCE_DIR}/tools/systemd/siltfs-exporter.service
    ${CMAKE_SOURCE_DIR}/tools/systemd/siltfs-failed@.service
    ${CMAKE_SOURCE_DIR}/tools/systemd/siltfs-fsck@.service
    ${CMAKE_SOURCE_DIR}/tools/systemd/siltfs-fsck@.timer
    ${CMAKE_SOURCE_DIR}/tools/systemd/siltfs-scrub@.service
    ${CMAKE_SOURCE_DIR}/tools/systemd/siltfs-scrub@.timer
  DESTINATION ${systemd_directory} COMPONENT program)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/SECURITY.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs
  COMPONENT program FILES_MATCHING PATTERN "*.md" PATTERN benchmarks EXCLUDE)
install(FILES ${debian_directory}/store.conf.example ${debian_directory}/mail-hook
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT program)

file(GLOB man_pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/man/*.[58])
foreach(page IN LISTS man_pages)
  string(REGEX MATCH "[58]$" section ${page})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT manual)
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT manual)
foreach(name mount umount)
  set(link ${CMAKE_CURRENT_BINARY_DIR}/${name}.fuse.siltfs.8)
  file(CREATE_LINK ${name}.siltfs.8 ${link} SYMBOLIC)
  install(FILES ${link} DESTINATION ${man_directory} COMPONENT manual)
  file(CREATE_LINK ${name}.siltfs.8.gz ${link}.gz SYMBOLIC)
  install(FILES ${link}.gz DESTINATION ${man_directory} COMPONENT debian EXCLUDE_FROM_ALL)
endforeach()

configure_file(${debian_directory}/changelog.in ${CMAKE_CURRENT_BINARY_DIR}/debian/changelog @ONLY)
# siltfs_install_compressed(<component> (<source> <destination>)...)
function(siltfs_install_compressed component)
  set(compressed_files ${ARGN})
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${component}/install_compressed.cmake)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/install_compressed.cmake.in ${script} @ONLY)
  install(SCRIPT ${script} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

# siltfs_install_package_documents(<component> <directory> (<source> <destination>)...): the documents
# that each Debian package must have, and more compressed files.
function(siltfs_install_package_documents component directory)
  siltfs_install_compressed(${component}
    ${CMAKE_SOURCE_DIR}/CHANGELOG.md ${directory}/changelog.gz
    ${CMAKE_CURRENT_BINARY_DIR}/debian/changelog ${directory}/changelog.Debian.gz ${ARGN})
  install(FILES ${debian_directory}/copyright
    DESTINATION ${directory} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

set(compressed_pages)
foreach(page IN LISTS man_pages)
  get_filename_component(name ${page} NAME)
  string(REGEX MATCH "[58]$" section ${page})
  list(APPEND compressed_pages ${page} ${CMAKE_INSTALL_MANDIR}/man${section}/${name}.gz)
endforeach()
siltfs_install_package_documents(debian ${CMAKE_INSTALL_DOCDIR} ${compressed_pages})
siltfs_install_package_documents(debian-development ${CMAKE_INSTALL_DATADIR}/doc/siltfs-dev)
install(FILES ${debian_directory}/lintian-overrides RENAME siltfs
  DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${debian_directory}/logrotate RENAME siltfs
  DESTINATION /etc/logrotate.d COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${debian_directory}/needrestart.conf RENAME siltfs.conf
  DESTINATION /etc/needrestart/conf.d COMPONENT debian EXCLUDE_FROM_ALL)
install(DIRECTORY DESTINATION /etc/siltfs/hooks.d COMPONENT debian EXCLUDE_FROM_ALL)
install(DIRECTORY DESTINATION /var/log/siltfs COMPONENT debian EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_NAME siltfs)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${siltfs_maintainer})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "deduplicating, compressing file system for SSDs")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"siltfs keeps a file system in a directory, the store, and mounts it through
FUSE. It cuts each file into chunks at points that depend on the content,
stores each chunk once, and compresses it. So a second copy of a file takes
almost no space, even if its bytes have moved to other offsets.
.
It is for data that repeats itself: copies of trees, backups, database dumps
and images of virtual machines. It keeps snapshots, sends them to other
machines, and checks and repairs its stores.")
set(CPACK_DEBIAN_PACKAGE_RELEASE ${SILTFS_DEBIAN_REVISION})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# fuse3 has fusermount3, which mounts and unmounts for users other than root.
set(CPACK_DEBIAN_PACKAGE_DEPENDS fuse3)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS logrotate)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_THREADS 0) # as many as there are processors
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${debian_directory}/postinst ${debian_directory}/postrm ${debian_directory}/conffiles)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# One package of two components.
set(CPACK_INSTALL_CMAKE_PROJECTS
  ${CMAKE_BINARY_DIR} siltfs program /
  ${CMAKE_BINARY_DIR} siltfs debian /)
include(CPack)
configure_file(${CMAKE_SOURCE_DIR}/cmake/CPackDevelopmentConfig.cmake.in
  ${CMAKE_BINARY_DIR}/CPackDevelopmentConfig.cmake @ONLY)
