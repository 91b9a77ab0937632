#include "tests/fs/core/store_fixture.h"

#include <algorithm>

#include "fs/interface/store_maintenance.h"
#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

#if defined(__SANITIZE_THREAD__)
// The distribution's RocksDB is built without ThreadSanitizer, so the sanitizer cannot see how
// RocksDB's readers and writers are ordered (tests/support/tsan.suppressions).
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:rocksdb::\nrace:libzstd.so\n"; }
#endif

namespace siltfs::testing {
namespace {

MakeStoreOptions DefaultOptions() {
  MakeStoreOptions options;
  options.index_memory = 4u << 20;
  return options;
}

}  // namespace

StoreFixture::StoreFixture() : StoreFixture(DefaultOptions()) {}

StoreFixture::StoreFixture(const MakeStoreOptions& options)
    : path_(directory_ / "store"), env_(NewPosixEnv()) {
  MakeStoreOptions here = options;
  here.path = path_;
  ForgetSegments(env_, path_);
  REQUIRE_OK(MakeStore(env_, here));
}

FileSystemOptions StoreFixture::Options(bool read_only) {
  FileSystemOptions options;
  options.store = path_;
  options.segments = SealedSegments(env_);
  options.read_only = read_only;
  options.commit_interval = std::chrono::hours(1);
  options.report = [this](const std::string& finding) {
    MutexLock lock(findings_mutex_);
    findings_.push_back(finding);
  };
  if (adjust) adjust(options);
  return options;
}

FileSystem& StoreFixture::Open(bool read_only) {
  auto opened = FileSystem::Open(env_, Options(read_only));
  REQUIRE_OK(opened);
  fs_ = std::move(opened).value();
  return *fs_;
}

Status StoreFixture::TryOpen(bool read_only) {
  return FileSystem::Open(env_, Options(read_only)).status();
}

std::vector<std::string> StoreFixture::findings() const {
  MutexLock lock(findings_mutex_);
  return findings_;
}

void StoreFixture::Close() {
  REQUIRE_OK(fs_->Close());
  fs_.reset();
}

FileSystemStats StoreFixture::Stats() {
  auto stats = fs_->maintenance().GetStats();
  REQUIRE_OK(stats);
  return *stats;
}

Result<InodeNumber> Resolve(FileSystem& fs, std::string_view path) {
  InodeNumber inode = kRootInode;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    auto found = fs.Lookup(inode, path.substr(0, slash));
    if (!found.ok()) return std::move(found).status();
    inode = found->inode;
    fs.Forget(inode, 1);
    path = slash == path.npos ? std::string_view() : path.substr(slash + 1);
  }
  return inode;
}

InodeNumber RequireInode(FileSystem& fs, std::string_view path) {
  const auto inode = Resolve(fs, path);
  INFO(path);
  REQUIRE_OK(inode);
  return *inode;
}

InodeNumber MakeDir(FileSystem& fs, InodeNumber parent, std::string_view name) {
  auto made = fs.MakeDirectory(parent, name, 0755, kCaller);
  REQUIRE_OK(made);
  fs.Forget(made->inode, 1);
  return made->inode;
}

InodeNumber MakeFile(FileSystem& fs, InodeNumber parent, std::string_view name) {
  auto made = fs.MakeNode(parent, name, 0100644, 0, kCaller);
  REQUIRE_OK(made);
  fs.Forget(made->inode, 1);
  return made->inode;
}

namespace {

InodeNumber WriteInPieces(FileSystem& fs, std::string_view name, ByteView data, size_t piece) {
  InodeNumber inode;
  auto found = Resolve(fs, name);
  if (found.ok()) {
    inode = *found;
    REQUIRE_OK(fs.OpenFile(inode, true));
  } else {
    auto created = fs.CreateFile(kRootInode, name, 0644, kCaller);
    REQUIRE_OK(created);
    inode = created->inode;
    fs.Forget(inode, 1);
  }
  for (size_t at = 0; at < data.size(); at += piece)
    REQUIRE_OK(fs.Write(inode, at, data.subspan(at, std::min(piece, data.size() - at))));
  fs.ReleaseFile(inode);
  return inode;
}

}  // namespace

InodeNumber WriteFile(FileSystem& fs, std::string_view name, ByteView data) {
  return WriteInPieces(fs, name, data, std::max<size_t>(data.size(), 1));
}

InodeNumber WriteLargeFile(FileSystem& fs, std::string_view name, ByteView data) {
  return WriteInPieces(fs, name, data, 128u << 10);
}

Result<Bytes> ReadFile(FileSystem& fs, InodeNumber inode) {
  auto attributes = fs.GetAttributes(inode);
  if (!attributes.ok()) return std::move(attributes).status();
  Bytes bytes(attributes->size);
  auto got = fs.Read(inode, 0, bytes);
  if (!got.ok()) return std::move(got).status();
  bytes.resize(*got);
  return bytes;
}

Bytes RandomBytes(uint64_t seed, size_t size) {
  Bytes bytes(size);
  Random(seed).Fill(bytes);
  return bytes;
}

std::vector<std::string> ListNames(FileSystem& fs, InodeNumber directory) {
  std::vector<std::string> names;
  REQUIRE_OK(fs.ReadDirectory(directory, 0, [&names](const DirectoryRecord& record) {
    if (record.name != "." && record.name != "..") names.emplace_back(record.name);
    return true;
  }));
  return names;
}

}  // namespace siltfs::testing
