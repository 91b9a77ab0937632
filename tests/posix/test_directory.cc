#include "tests/posix/test_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace siltfs::testing {
namespace {

std::string Environment(const char* name) {
  const char* value = getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

std::string OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string output;
  char buffer[4096];
  for (size_t count = 0; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    output.append(buffer, count);
  }
  if (pclose(pipe) != 0) throw std::runtime_error("failed: " + command);
  return output;
}

}  // namespace

std::string FileSystemRoot() { return Environment("SILTFS_POSIX_DIRECTORY"); }

TestDirectory::TestDirectory() {
  umask(0);
  std::string pattern = FileSystemRoot() + "/test-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr || chmod(pattern.c_str(), 0777) != 0) {
    throw std::runtime_error("cannot make a directory " + pattern);
  }
  path_ = pattern;
}

TestDirectory::~TestDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void DropCaches() {
  const int root = open(FileSystemRoot().c_str(), O_RDONLY | O_DIRECTORY);
  if (root < 0) throw std::runtime_error(std::string("cannot open: ") + std::strerror(errno));
  if (syncfs(root) != 0) {
    throw std::runtime_error(std::string("cannot sync the file system: ") + std::strerror(errno));
  }
  close(root);
  // Drops unused inodes with their pages, but not the whole page cache, which other programs use.
  std::ofstream("/proc/sys/vm/drop_caches") << "2\n";
}

double StoreFigure(const std::string& name) {
  const std::string command =
      Environment("SILTFS_PROGRAM") + " stat --json '" + FileSystemRoot() + "'";
  return nlohmann::json::parse(OutputOf(command)).at(name).get<double>();
}

}  // namespace siltfs::testing
