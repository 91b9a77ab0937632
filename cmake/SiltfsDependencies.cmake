# Every dependency is a package of Debian 12 and 13 (docs/dependencies.md says what each is for).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(RocksDB REQUIRED CONFIG)
find_package(fmt REQUIRED CONFIG)
find_package(spdlog REQUIRED CONFIG)
find_package(CLI11 REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(Catch2 REQUIRED CONFIG)
# The prefix is not "zstd", because find_package(RocksDB) searches for zstd, too, and uses cache
# variables that begin with "zstd".
pkg_check_modules(siltfs_zstd REQUIRED IMPORTED_TARGET libzstd)
add_library(PkgConfig::zstd ALIAS PkgConfig::siltfs_zstd)
# For the same reason the prefix is not "lz4".
pkg_check_modules(siltfs_lz4 REQUIRED IMPORTED_TARGET liblz4)
add_library(PkgConfig::lz4 ALIAS PkgConfig::siltfs_lz4)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(liburing REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(fuse3 REQUIRED IMPORTED_TARGET fuse3>=3.14)
pkg_check_modules(libmicrohttpd REQUIRED IMPORTED_TARGET libmicrohttpd>=0.9.75)
pkg_check_modules(libcurl REQUIRED IMPORTED_TARGET libcurl>=7.88)
pkg_check_modules(expat REQUIRED IMPORTED_TARGET expat>=2.5)
