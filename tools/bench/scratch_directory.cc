#include "tools/bench/scratch_directory.h"

#include <array>
#include <cstdlib>

#include "store/env/files.h"
#include "tools/bench/bench_threads.h"

namespace siltfs {
namespace {

std::string TemporaryPlace() {
  const char* const place = std::getenv("TMPDIR");
  return place == nullptr || *place == '\0' ? "/tmp" : place;
}

std::string FreshName(Env& env) {
  std::array<uint8_t, 6> bytes{};
  Require(env.FillRandom(bytes));
  std::string name = "siltfs-bench-";
  for (const uint8_t byte : bytes) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return name;
}

Status RemoveTree(Env& env, const std::string& directory) {
  SILTFS_ASSIGN_OR_RETURN(const auto entries, env.ListDirectory(directory));
  for (const DirectoryEntry& entry : entries) {
    const std::string path = JoinPath(directory, entry.name);
    SILTFS_RETURN_IF_ERROR(entry.type == FileType::kDirectory ? RemoveTree(env, path)
                                                              : env.RemoveFile(path));
  }
  return env.RemoveDirectory(directory);
}

}  // namespace

ScratchDirectory::ScratchDirectory(Env& env, const std::string& parent)
    : env_(env), path_(JoinPath(parent.empty() ? TemporaryPlace() : parent, FreshName(env))) {
  Require(env_.CreateDirectory(path_));
}

ScratchDirectory::~ScratchDirectory() {
  RemoveTree(env_, path_).IgnoreError("a leftover directory is harmless");
}

}  // namespace siltfs
