#include "tests/fs/repair/campaign_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "fs/open/make_store.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kLargeFile = 1'500'000;

// Half of the bytes are compressible.
Bytes Mixed(uint64_t seed, size_t size) {
  Bytes bytes = RandomBytes(seed, size);
  for (size_t at = 0; at + 64 <= size; at += 64) std::fill_n(bytes.begin() + at, 32, bytes[at]);
  return bytes;
}

}  // namespace

CampaignStore::CampaignStore(uint64_t bytes, uint64_t segment_bytes) {
  MakeStoreOptions options;
  options.path = kPath;
  options.index_memory = 4u << 20;
  REQUIRE_OK(MakeStore(env_, options));
  auto state = ReadSuperblock(env_, kPath);
  REQUIRE_OK(state);
  state->superblock.segment_bytes = segment_bytes;
  REQUIRE_OK(WriteSuperblock(env_, kPath, state->superblock));
  auto fs = Open(env_, false);
  REQUIRE_OK(fs);
  for (uint64_t i = 0; i < 6; ++i)
    Write(**fs, fmt::format("file {}", i), RandomBytes(i, 1000 + i * 20'000));
  Write(**fs, "large", RandomBytes(50, kLargeFile));
  Write(**fs, "copy", RandomBytes(50, kLargeFile));
  Bytes sparse(600'000);
  const Bytes end = RandomBytes(51, 50'000);
  std::copy(end.begin(), end.end(), sparse.end() - 50'000);
  Write(**fs, "sparse", sparse);
  for (uint64_t written = kLargeFile, i = 0; written < bytes; written += kLargeFile, ++i) {
    const uint64_t seed = 100 + i;
    const std::string name = fmt::format("more {}", i);
    Write(**fs, name, i % 4 == 0 ? Mixed(seed, kLargeFile * 2) : RandomBytes(seed, kLargeFile));
  }
  REQUIRE_OK((*fs)->Close());
  fs->reset();
  // Mount again, so that metadata has tables of several mounts.
  fs = Open(env_, false);
  REQUIRE_OK(fs);
  Write(**fs, "later", RandomBytes(52, 100'000));
  REQUIRE_OK((*fs)->Close());
  fs->reset();
  List(kPath);
  FindBlockEnds();
}

Result<std::unique_ptr<FileSystem>> CampaignStore::Open(Env& env, bool read_only) {
  FileSystemOptions options;
  options.store = kPath;
  options.read_only = read_only;
  options.commit_interval = std::chrono::hours(1);
  return FileSystem::Open(env, options);
}

void CampaignStore::Write(FileSystem& fs, const std::string& name, const Bytes& content) {
  WriteLargeFile(fs, name, content);
  files_[name] = content;
}

void CampaignStore::List(const std::string& directory) {
  auto entries = env_.ListDirectory(directory);
  REQUIRE_OK(entries);
  for (const DirectoryEntry& entry : *entries) {
    const std::string path = JoinPath(directory, entry.name);
    if (entry.type == FileType::kDirectory) {
      List(path);
      continue;
    }
    const auto info = env_.GetFileInfo(path);
    REQUIRE_OK(info);
    sizes_[path] = info->size;
    bytes_ += info->size;
  }
}

void CampaignStore::FindBlockEnds() {
  const auto state = ReadSuperblock(env_, kPath);
  REQUIRE_OK(state);
  const BlockCodec codec;
  for (const auto& [path, size] : sizes_) {
    const auto id = ParseSegmentFileName(path.substr(path.rfind('/') + 1));
    if (!id) continue;
    const auto reader = SegmentReader::Open(env_, kPath, {state->superblock.uuid, *id}, codec);
    REQUIRE_OK(reader);
    const auto trailer = (*reader)->ReadTrailer();
    block_ends_[path] = trailer.ok() ? trailer->data_end : size;
  }
}

std::optional<uint64_t> CampaignStore::BlocksEnd(const std::string& path) const {
  const auto end = block_ends_.find(path);
  if (end == block_ends_.end()) return std::nullopt;
  return end->second;
}

}  // namespace siltfs::testing
